/**
 * From what somebody wants to run to the row of a run: input encoded and checked, concurrency key found. Pure but for the
 * random numbers of the run. `Starter` calls it for every trigger.
 *
 * TRUST: the input is a caller's value or a script's encoded one; it is bounded by the version's limits and checked by the
 * manifest's schema before there is a run.
 */

import { createHash } from "node:crypto";
import type { NewRun, Trigger } from "@flowcell/journal";
import { decodeValue, type EncodedValue, encodeValue, ValueError, valueBounds } from "@flowcell/protocol";
import type { VersionPlan } from "../catalog/version-plan.js";
import { newRunId, newSeed } from "../ids.js";
import { OperationError } from "../ports.js";

export type RunInput =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "encoded"; readonly encoded: EncodedValue };

export interface RunWish {
  readonly input: RunInput;
  readonly trigger: Trigger;
  readonly deduplicationKey: string | null;
  readonly now: number;
  readonly notBefore?: number;
  readonly attempt?: number;
}

const concurrencyKeyChars = 200;

/** Throws OperationError `invalid` when the input is not what the flow takes. */
export function newRun(plan: VersionPlan, wish: RunWish): NewRun {
  if (plan.problem !== null) throw new OperationError("unavailable", plan.problem);
  const { value, encoded } = readInput(plan, wish.input);
  const problem = plan.inputProblem(value);
  if (problem !== null) throw new OperationError("invalid", `flow ${plan.flow}: ${problem}`, [problem]);
  const { now } = wish;
  return {
    runId: newRunId(),
    flow: plan.flow,
    versionHash: plan.hash,
    trigger: wish.trigger,
    deduplicationKey: wish.deduplicationKey,
    concurrencyKey: concurrencyKey(plan.manifest.concurrency.key, value),
    input: encoded,
    seed: newSeed(),
    guestStartMs: now,
    createdAt: now,
    notBefore: Math.max(now, wish.notBefore ?? now),
    deadlineMs: plan.manifest.deadlineMs,
    attempt: wish.attempt ?? 1,
  };
}

interface ReadInput {
  readonly value: unknown;
  readonly encoded: EncodedValue;
}

function readInput({ flow, limits }: VersionPlan, input: RunInput): ReadInput {
  const { inputBytes, bodyBytes } = limits;
  const bounds = {
    textBytes: inputBytes,
    attachmentBytes: bodyBytes,
    nodes: Math.max(valueBounds.nodes, inputBytes),
  };
  try {
    if (input.kind === "encoded") {
      return { value: decodeValue(input.encoded, bounds), encoded: input.encoded };
    }
    return { value: input.value, encoded: encodeValue(input.value, bounds) };
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    const limit =
      error.code === "too_large" ? ` (limits: inputBytes ${inputBytes}, bodyBytes ${bodyBytes})` : "";
    throw new OperationError("invalid", `flow ${flow}: input: ${error.message}${limit}`);
  }
}

/** "" for a flow without a key and for an input that has nothing at the pointer. Long ones are kept as a digest. */
export function concurrencyKey(pointer: string | undefined, input: unknown): string {
  if (pointer === undefined) return "";
  const found = atPointer(input, pointer);
  if (found === undefined) return "";
  const text = encodeValue(found, { stacks: false }).text;
  if (text.length <= concurrencyKeyChars) return text;
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/** RFC 6901, own properties only. */
function atPointer(input: unknown, pointer: string): unknown {
  let at = input;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    if (Array.isArray(at) && !/^(?:0|[1-9][0-9]{0,9})$/.test(key)) return undefined;
    at = new Map<string, unknown>(Object.entries(at)).get(key);
  }
  return at;
}
