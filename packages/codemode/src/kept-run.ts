/**
 * An execution as a row of the journal: its script, and what it may use, are the run's input, so that any later process can go
 * on with it. journal-runs.ts calls it.
 */

import { createHash, randomBytes } from "node:crypto";
import type { NewRun, RunRow } from "@flowcell/journal";
import { type Manifest, parseManifest } from "@flowcell/manifest";
import { decodeValue, encodeValue, type Limits, valueBounds } from "@flowcell/protocol";
import { newRunId } from "./run-id.js";

/** What is kept with a run, as its input. */
export interface Kept {
  readonly code: string;
  readonly label: string | undefined;
  readonly limits: Limits;
}

/** Of a run, suspensions not counted; what one activation may take is its wallMs. */
const deadlineMs = 24 * 3_600_000;

export function newRun(name: string, kept: Kept, idempotencyKey: string | undefined): NewRun {
  const now = Date.now();
  return {
    runId: newRunId(),
    flow: name,
    versionHash: createHash("sha256").update(kept.code).digest("hex"),
    trigger: { kind: "manual", by: "codemode" },
    deduplicationKey: idempotencyKey ?? null,
    concurrencyKey: "",
    input: encodeValue(kept, keptBounds),
    seed: randomBytes(32).toString("hex"),
    guestStartMs: now,
    createdAt: now,
    notBefore: now,
    deadlineMs,
    attempt: 1,
  };
}

/** Of a script and its limits; more than any sourceBytes lets in. */
export const keptBytes = 8 * 1024 * 1024;
const keptBounds = { textBytes: keptBytes, attachmentBytes: 0, nodes: valueBounds.nodes };

/** What `newRun` wrote. */
export function keptOf({ input }: RunRow): Kept {
  return decodeValue(input, keptBounds) as Kept; // its own text
}

let known: Manifest | undefined;

/** Nothing of it is used but its being there: tools are no grants. */
export function manifest(): Manifest {
  if (known !== undefined) return known;
  const parsed = parseManifest('{"format":1,"id":"codemode"}');
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join("; "));
  known = parsed.manifest;
  return known;
}
