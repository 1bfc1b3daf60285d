/**
 * Recordings in a flow's own tests: the text of packages/journal becomes a finished run in a store, of the version that is
 * tested now, so that the service can replay it.
 *
 * TRUST: a recording comes from a flow's folder. `importRun` checks its form, the store its rules; the engine that replays
 * it carries nothing out.
 */

import { OperationError } from "@flowcell/flows";
import {
  type CallRow,
  type Delivery,
  importRun,
  type NewCall,
  type NewRun,
  type OperationResult,
  RecordingError,
  type RunHistory,
  type RunOperation,
  type RunRow,
  type Store,
  type Unit,
} from "@flowcell/journal";

/** Throws OperationError for what is no recording. */
export function readRecording(json: unknown): RunHistory {
  try {
    return importRun(JSON.stringify(json) ?? "");
  } catch (error) {
    if (!(error instanceof RecordingError)) throw error;
    throw new OperationError(
      "invalid",
      `this is no recording (${error.message}); flowcell journal RUN --export FILE writes one`,
    );
  }
}

/** Puts the run into a store as a finished run of this version. */
export async function restore(
  { run, calls, deliveries }: RunHistory,
  store: Store,
  version: { readonly flow: string; readonly hash: string },
  runId: string,
): Promise<void> {
  const owner = "recording";
  const [, claim] = await commit(store, {
    operations: [
      { kind: "createRun", run: newRun(run, version, runId) },
      { kind: "claim", runId, owner },
    ],
  });
  if (claim?.kind !== "claim") throw new Error("the claim of a run has no generation");
  await commit(store, {
    fence: { runId, owner, generation: claim.generation },
    operations: [...calls.map(newCall), ...deliveries.map(deliver), { kind: "run", patch: finished(run) }],
  });
}

function newRun(
  run: RunRow,
  version: { readonly flow: string; readonly hash: string },
  runId: string,
): NewRun {
  const { trigger, concurrencyKey, input, seed, guestStartMs, createdAt, notBefore, deadlineMs, attempt } =
    run;
  return {
    runId,
    flow: version.flow,
    versionHash: version.hash,
    trigger,
    // The key belongs to the run that was recorded.
    deduplicationKey: null,
    concurrencyKey,
    input,
    seed,
    guestStartMs,
    createdAt,
    notBefore,
    deadlineMs,
    attempt,
  };
}

function newCall({
  cancelled: _cancelled,
  unknownReason: _reason,
  attempts,
  ...call
}: CallRow): RunOperation {
  const made: NewCall = call;
  return { kind: "call", call: made, attempts };
}

function deliver(delivery: Delivery): RunOperation {
  const { order, guestClockMs, at } = delivery;
  if (delivery.kind === "timer") return { kind: "timer", order, guestClockMs, at };
  const { position, outcome } = delivery;
  return { kind: "deliver", order, guestClockMs, position, outcome, at };
}

/** A run that was recorded on its way is replayed as far as it had come. */
function finished(run: RunRow): Extract<RunOperation, { readonly kind: "run" }>["patch"] {
  const { status, reason, startedAt, finishedAt, changedAt, activeMs, activations, cpuUs, heapPeakBytes } =
    run;
  const { fingerprint, endOrder, endStatus, result, errorJson, warningsJson } = run;
  return {
    state: "finished",
    status: status ?? "cancelled",
    reason,
    startedAt,
    finishedAt: finishedAt ?? changedAt,
    changedAt,
    activeMs,
    activations,
    cpuUs,
    heapPeakBytes,
    fingerprint,
    endOrder,
    endStatus,
    result,
    errorJson,
    warningsJson,
  };
}

async function commit(store: Store, unit: Unit): Promise<readonly OperationResult[]> {
  const result = await store.commit(unit);
  if (result.ok) return result.results;
  throw new OperationError("invalid", `the recording contradicts itself: ${result.message}`);
}
