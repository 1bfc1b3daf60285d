/**
 * What is known of a run, as callers get it: built from its journal, while it runs and for as long as it is kept. Pure over
 * rows.
 *
 * TRUST: results, titles, arguments, logs and error texts are a script's own: bounded, decoded, never interpreted. Whoever
 * shows them escapes them.
 */

import type { CallHead, DeliveryHead, LogRow, OutcomeHead, RunHeads, RunRow } from "@flowcell/journal";
import {
  decodeValue,
  type EncodedValue,
  limitCeilings,
  ValueError,
  type WarningData,
} from "@flowcell/protocol";
import type { CallReport, PendingReport, RunErrorData, RunReport } from "./ports.js";

type Answered = DeliveryHead & { readonly kind: "call" };
type Settled = ReadonlyMap<number, Answered>;

export function runReport(
  { run, calls, deliveries }: RunHeads,
  logs: readonly LogRow[],
  now: number,
): RunReport {
  const settled: Settled = new Map(
    deliveries.flatMap((one) => (one.kind === "call" ? [[one.position, one] as const] : [])),
  );
  const base = {
    runId: run.runId,
    flow: run.flow,
    versionHash: run.versionHash,
    state: run.state,
    createdAt: run.createdAt,
    startedAt: run.startedAt,
    finishedAt: run.finishedAt,
    trigger: run.trigger,
    attempt: run.attempt,
    activations: run.activations,
    usage: {
      cpuMs: run.cpuUs / 1000,
      wallMs: run.activeMs + (run.state === "running" ? Math.max(0, now - run.changedAt) : 0),
      heapPeakBytes: run.heapPeakBytes,
      hostCalls: calls.length,
    },
    logs: logs.map(({ level, guestTimeMs, text }) => ({ level, time: isoTime(guestTimeMs), text })),
    calls: calls.map((call) => callReport(call, settled.get(call.position), run)),
    pending: pendingOf(run, calls, settled),
    dueAt: run.status === "suspended" ? run.dueAt : null,
    warnings: parsed<readonly WarningData[]>(run.warningsJson),
    confinement: run.confinementJson === null ? null : parsed<unknown>(run.confinementJson),
  };
  const error = run.errorJson === null ? {} : { error: parsed<RunErrorData>(run.errorJson) };
  if (run.status !== "completed") return { ...base, ok: false, status: run.status, ...error };
  const value = run.result === null ? undefined : decoded(run.result);
  return { ...base, ok: true, status: run.status, ...(value === undefined ? {} : { value }) };
}

/** JSON text that flowcell itself wrote. */
function parsed<Value>(json: string): Value {
  return JSON.parse(json) as Value; // by the type that it was written of
}

/** A clock that a script set in virtual time may lie beyond what a Date holds. */
function isoTime(timeMs: number): string {
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime()) ? String(timeMs) : date.toISOString();
}

function callReport(call: CallHead, delivery: Answered | undefined, run: RunRow): CallReport {
  const outcome = delivery?.outcome;
  return {
    position: call.position,
    name: call.name,
    effect: call.effect,
    state: callState(call, outcome, run),
    code: outcome?.ok === false ? outcome.error.code : null,
    idempotencyKey: call.idempotencyKey,
    madeAt: call.madeAt,
    durationMs: delivery === undefined ? null : Math.max(0, delivery.at - call.madeAt),
    inputBytes: call.argsBytes,
    outputBytes: outcome?.ok === true ? outcome.bytes : 0,
  };
}

function callState(call: CallHead, outcome: OutcomeHead | undefined, run: RunRow): CallReport["state"] {
  if (outcome?.ok === true) return "done";
  if (outcome !== undefined) {
    if (outcome.error.code === "outcome_unknown") return "unknown";
    return outcome.error.code === "cancelled" ? "cancelled" : "failed";
  }
  if (call.unknownReason !== null) return "unknown";
  if (run.state !== "finished") return call.effect === "wait" ? "waiting" : "running";
  if (call.attempts > 0 && (call.effect === "keyed" || call.effect === "once")) return "unknown";
  return call.effect === "wait" || call.attempts > 0 ? "cancelled" : "not_started";
}

function pendingOf(run: RunRow, calls: readonly CallHead[], settled: Settled): readonly PendingReport[] {
  if (run.state === "finished") return [];
  return calls.flatMap((call) => {
    if (settled.has(call.position) || call.cancelled) return [];
    const waitsFor = waitsForText(call);
    if (waitsFor === null) return [];
    const { callId, position, name, dueAt, wait } = call;
    const asked =
      wait?.kind === "approval"
        ? { title: wait.title, ...(wait.detail === null ? {} : { args: decoded(wait.detail) }) }
        : {};
    return [{ callId, position, name, waitsFor, dueAt, ...asked }];
  });
}

function waitsForText({ wait, unknownReason }: CallHead): string | null {
  if (unknownReason !== null) return `an operator: what became of the call is unknown (${unknownReason})`;
  switch (wait?.kind) {
    case undefined:
      return null;
    case "time":
      return "its time";
    case "signal":
      return `the signal ${JSON.stringify(wait.name)}`;
    case "approval":
      return "an answer";
    case "run":
      return `the run ${wait.runId}`;
  }
}

/** What a value of a script is; one that cannot be read any more is said to be so. */
export function decoded(value: EncodedValue): unknown {
  try {
    const { resultBytes, bodyBytes } = limitCeilings;
    return decodeValue(value, { textBytes: resultBytes, attachmentBytes: bodyBytes, nodes: resultBytes });
  } catch (error) {
    if (error instanceof ValueError) return `(a value that cannot be read: ${error.message})`;
    throw error;
  }
}
