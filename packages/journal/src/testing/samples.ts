/** Units and rows that tests of stores are made of. */

import type { CallOutcome, EncodedValue } from "@flowcell/protocol";
import type { Fence, NewCall, NewRun, NewVersion, Operation, Store, Unit, UnitResult } from "../store.js";

export function json(value: unknown, ...attachments: Uint8Array[]): EncodedValue {
  return { text: JSON.stringify(value), devalue: false, attachments };
}

export function ok(value: unknown, ...attachments: Uint8Array[]): CallOutcome {
  return { ok: true, value: json(value, ...attachments) };
}

export function sampleRun(runId: string, changes: Partial<NewRun> = {}): NewRun {
  return {
    runId,
    flow: "watcher",
    versionHash: "a".repeat(64),
    trigger: { kind: "manual", by: "tester" },
    deduplicationKey: null,
    concurrencyKey: "",
    input: json({ city: "Bern" }),
    seed: "5".repeat(64),
    guestStartMs: 1_000,
    createdAt: 1_000,
    notBefore: 1_000,
    deadlineMs: 600_000,
    attempt: 1,
    ...changes,
  };
}

export function sampleCall(position: number, changes: Partial<NewCall> = {}): NewCall {
  return {
    position,
    name: "fetch",
    effect: "read",
    digest: "d".repeat(64),
    args: json([`argument ${position}`]),
    idempotencyKey: `key-${position}`,
    madeAt: 1_000 + position,
    note: null,
    wait: null,
    dueAt: null,
    callId: null,
    ...changes,
  };
}

export function call(position: number, changes: Partial<NewCall> = {}, attempts?: number): Operation {
  const row = sampleCall(position, changes);
  return { kind: "call", call: row, attempts: attempts ?? (row.effect === "wait" ? 0 : 1) };
}

export function deliver(
  order: number,
  position: number,
  outcome = ok(order),
  guestClockMs = 1_000,
): Operation {
  return { kind: "deliver", order, guestClockMs, position, outcome, at: 2_000 + order };
}

export function timer(order: number, guestClockMs = 1_000): Operation {
  return { kind: "timer", order, guestClockMs, at: 2_000 + order };
}

export function local(
  order: number,
  position: number,
  operation: Extract<Operation, { readonly kind: "local" }>["operation"],
  bytesMax = 1_000_000,
): Operation {
  return { kind: "local", order, guestClockMs: 1_000, position, operation, bytesMax, at: 2_000 + order };
}

export function finish(at = 5_000): Operation {
  return {
    kind: "run",
    patch: { state: "finished", status: "completed", finishedAt: at, changedAt: at, result: json("done") },
  };
}

export function sampleVersion(hash: string, changes: Partial<NewVersion> = {}): NewVersion {
  return {
    flow: "watcher",
    hash,
    manifestText: '{"format":1,"id":"watcher"}',
    bundle: `var flow = "${hash}";`,
    bundleMap: "{}",
    sources: [{ path: "flow.ts", text: "export default () => 1;" }],
    installedAt: 900,
    installedBy: "tester",
    dryRunJson: null,
    ...changes,
  };
}

/** Commits operations of which none may be refused. */
export async function must(store: Store, unit: Unit): Promise<Extract<UnitResult, { readonly ok: true }>> {
  const result = await store.commit(unit);
  if (!result.ok) throw new Error(`refused (${result.reason} at ${result.at}): ${result.message}`);
  return result;
}

/** A run that is made and claimed. */
export async function startedRun(store: Store, runId: string, changes: Partial<NewRun> = {}): Promise<Fence> {
  const owner = "owner-1";
  await must(store, {
    operations: [
      { kind: "createRun", run: sampleRun(runId, changes) },
      { kind: "claim", runId, owner },
    ],
  });
  return { runId, owner, generation: 1 };
}
