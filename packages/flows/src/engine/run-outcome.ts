/**
 * What `flow.wait` answers: whether a run may wait for another, and how that one ended, as a value for a script. Used by the
 * runner when the other run had finished before, and by the service when it finishes.
 */

import type { RunRow } from "@flowcell/journal";
import {
  type CallOutcome,
  decodeValue,
  encodeValue,
  type HostErrorCode,
  ValueError,
  valueBounds,
} from "@flowcell/protocol";

/** The result of a run is at most as long as a value that a call returns may be; one that is longer is told as such. */
export function runOutcome(run: RunRow): CallOutcome {
  const { status, result, errorJson, runId } = run;
  try {
    const answer = {
      status,
      ok: status === "completed",
      value:
        result === null
          ? undefined
          : decodeValue(result, { nodes: valueBounds.nodes, textBytes: resultBytes }),
      error: errorJson === null ? null : errorOf(errorJson),
    };
    return { ok: true, value: encodeValue(answer, { textBytes: resultBytes }) };
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    const code = error.code === "too_large" ? "result_too_large" : "internal";
    return failure(code, `flow.wait: the result of run ${runId} cannot be sent: ${error.message}`);
  }
}

/** Why a run may not wait for another, whose flow is null when it is not there; null when it may. */
export function waitRefusal(
  runId: string,
  flow: string | null,
  waiter: string,
  granted: readonly string[],
): CallOutcome | null {
  if (flow === null) return unknownRun(runId);
  if (runId === waiter) return failure("conflict", "flow.wait: a run that waits for itself would never end");
  if (granted.includes(flow)) return null;
  const shown = JSON.stringify(flow);
  return failure(
    "denied",
    `flow.wait: the run is one of ${shown}; add ${shown} to grants.flows of the manifest`,
  );
}

export function unknownRun(runId: string): CallOutcome {
  return failure("not_found", `flow.wait: there is no run ${JSON.stringify(runId)}, or it was removed`);
}

const resultBytes = 1024 * 1024;

/** Without stack, cause and places: they are for the author of the other flow. */
function errorOf(json: string): { code: string; name: string; message: string } {
  const { code, name, message } = JSON.parse(json) as Record<string, unknown>; // written by errors.ts
  return { code: String(code), name: String(name), message: String(message) };
}

function failure(code: HostErrorCode, message: string): CallOutcome {
  return { ok: false, error: { code, message, retryable: false } };
}
