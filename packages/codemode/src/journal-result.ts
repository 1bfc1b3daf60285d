/**
 * The result of an execution that is journaled, from what the journal holds of its run. Pure over rows; journal-runs.ts calls
 * it when a run has finished or is suspended, also long afterwards and in another process.
 *
 * Kept true: a question and the call that it was about are one call of the result: not started while somebody is asked.
 */

import { renderFrame } from "@flowcell/bundle";
import { type RunReport, runReport } from "@flowcell/flows";
import { type CallRow, headsOf, type LogRow, type RunHistory } from "@flowcell/journal";
import {
  type CallRecord,
  decodeValue,
  type EncodedValue,
  type ErrorReport,
  type PendingCall,
  type RunError,
  type RunReportBase,
  type Usage,
  valueBounds,
} from "@flowcell/protocol";
import type { WorkerConfinement } from "@flowcell/sandbox";
import { askedTool } from "./approval-calls.js";
import type { ExecuteResult } from "./result.js";

/** What the journal does not hold: known to the process that ran the execution. */
export interface SeenUsage {
  /** False for one that this process has driven from its beginning and no worker was given. */
  readonly begun: boolean;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly queuedMs: number;
  readonly logsTruncated: boolean;
  /** Remarks about the source. */
  readonly warnings: readonly string[];
}

type StoredError = NonNullable<RunReport["error"]>;

export const nothingSeen: SeenUsage = Object.freeze({
  begun: true,
  bytesIn: 0,
  bytesOut: 0,
  queuedMs: 0,
  logsTruncated: false,
  warnings: [],
});

export function journalResult(
  history: RunHistory,
  logs: readonly LogRow[],
  code: string,
  seen: SeenUsage,
): ExecuteResult {
  const report = runReport(headsOf(history), logs, Date.now());
  const { run } = history;
  const calls = history.calls.flatMap((call, index) => recordOf(call, report.calls[index]));
  const base: RunReportBase<WorkerConfinement> = {
    runId: report.runId,
    started: run.activations > 0 && seen.begun,
    logs: report.logs,
    logsTruncated: seen.logsTruncated,
    usage: usageOf(report, calls, seen),
    calls,
    pending: run.state === "suspended" ? pendingOf(history, report) : [],
    warnings: [...seen.warnings.map((message) => ({ code: "source", message })), ...report.warnings],
    // What was stored is what the sandbox attested for the last worker.
    confinement: report.confinement as WorkerConfinement | null,
  };
  if (report.status === "completed") return { ok: true, status: "completed", value: report.value, ...base };
  const status = report.status ?? "internal";
  const error =
    report.error === undefined
      ? suspendedError(status, base.pending, unknownCalls(history))
      : errorOf(report.error, code);
  return { ok: false, status, error, ...base };
}

/** A call that was begun before a crash: nothing tells whether it took effect. */
export interface UnknownCall {
  readonly position: number;
  readonly name: string;
  /** What the tool was given with the call, to look it up on the other side. */
  readonly idempotencyKey: string;
}

export function unknownCalls({ calls }: RunHistory): readonly UnknownCall[] {
  return calls
    .filter(({ unknownReason }) => unknownReason !== null)
    .map(({ position, name, idempotencyKey }) => ({ position, name, idempotencyKey }));
}

function suspendedError(
  status: string,
  pending: readonly PendingCall[],
  unknown: readonly UnknownCall[],
): RunError {
  const [first] = unknown;
  if (first !== undefined) {
    const told = unknown.map(
      ({ name, position, idempotencyKey }) =>
        `${name} (position ${position}, idempotency key ${idempotencyKey})`,
    );
    const message =
      `it stopped in the middle of ${told.join(", ")}, and nothing tells whether the call took effect: ` +
      "find out, then say so with codemode.reconcile(runId, " +
      `[{ position: ${first.position}, happened: true, value }]), or happened: false to make the call again`;
    return { code: "outcome_unknown", name: status, message };
  }
  const names = [...new Set(pending.map(({ name }) => name))].join(", ");
  const message =
    names === ""
      ? "it waits for something outside"
      : `it waits for the approval of ${names}; answer with resume`;
  return { code: "waiting", name: status, message };
}

/** What was stored, with the line that it points at. */
function errorOf(stored: StoredError, code: string): RunError {
  const { cause, errors, place, ...rest } = stored;
  const line = place === undefined ? undefined : code.split(/\r\n|[\n\r\u2028\u2029]/)[place.line - 1];
  return {
    ...rest,
    ...(place === undefined ? {} : { place }),
    ...(place === undefined || line === undefined ? {} : { frame: renderFrame(place, line) }),
    ...(cause === undefined ? {} : { cause: errorReport(cause) }),
    ...(errors === undefined ? {} : { errors: errors.map(errorReport) }),
  };
}

function errorReport({ name, message, code, stack, cause, errors }: StoredError): ErrorReport {
  return {
    name,
    message,
    stack: stack ?? `${name}: ${message}`,
    // The code that stands for having none.
    ...(code === "uncaught" ? {} : { code }),
    ...(cause === undefined ? {} : { cause: errorReport(cause) }),
    ...(errors === undefined ? {} : { errors: errors.map(errorReport) }),
  };
}

function usageOf(report: RunReport, calls: readonly CallRecord[], seen: SeenUsage): Usage {
  const { cpuMs, wallMs, heapPeakBytes } = report.usage;
  const { bytesIn, bytesOut, queuedMs } = seen;
  return { cpuMs, wallMs, heapPeakBytes, hostCalls: calls.length, bytesIn, bytesOut, queuedMs };
}

/** A question that was answered is told by the call that follows it. */
function recordOf(row: CallRow, report: RunReport["calls"][number] | undefined): CallRecord[] {
  if (report === undefined) return [];
  const asked = askedTool(row.name);
  if (asked !== undefined && (report.state === "done" || row.wait?.kind !== "approval")) return [];
  const { position, idempotencyKey, inputBytes, outputBytes } = report;
  return [
    {
      position,
      name: asked ?? row.name,
      state: stateOf(report.state),
      ...(report.code === null ? {} : { code: report.code }),
      durationMs: report.durationMs ?? 0,
      inputBytes,
      outputBytes,
      idempotencyKey,
    },
  ];
}

function stateOf(state: RunReport["calls"][number]["state"]): CallRecord["state"] {
  switch (state) {
    case "waiting":
    case "not_started":
      return "not_started";
    case "running":
      return "unknown";
    case "done":
    case "failed":
    case "cancelled":
    case "unknown":
      return state;
  }
}

function pendingOf({ calls }: RunHistory, { pending }: RunReport): PendingCall[] {
  return pending.flatMap(({ callId, name, position }) => {
    const wait = calls.find((call) => call.position === position)?.wait;
    if (callId === null || wait?.kind !== "approval") return [];
    return [pendingCall(callId, askedTool(name) ?? name, wait.detail)];
  });
}

export function pendingCall(callId: string, name: string, detail: EncodedValue | null): PendingCall {
  // TRUST: what a script asked for, checked by the tool's schema; shown, never interpreted.
  const input =
    detail === null
      ? undefined
      : decodeValue(detail, { textBytes: detail.text.length, nodes: valueBounds.nodes });
  return { callId, name, args: [input] };
}
