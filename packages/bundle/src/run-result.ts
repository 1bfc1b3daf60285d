/**
 * Puts the result of a run together: what the pool found out about an activation, with errors moved to the author's files.
 * The library and codemode call it; protocol declares the object (`run-result.ts`).
 *
 * TRUST: the value is decoded here within the bounds that the worker was given; texts are a script's own.
 */

import {
  type ActivationError,
  type CallRecord,
  type ConsoleLine,
  decodeValue,
  type Effect,
  type EncodedValue,
  type ErrorReport,
  type Limits,
  type LogLine,
  type RunError,
  type RunFailedOf,
  type RunReportBase,
  type RunResultOf,
  type ScriptErrorData,
  type Status,
  type Usage,
  ValueError,
  valueBounds,
  type WarningData,
} from "@flowcell/protocol";
import type { BundleFailure } from "./failure.js";
import type { ScriptMap } from "./script-map.js";
import { computedImportText, renderFrame } from "./source-text.js";
import { mapConsoleText, mapStack } from "./stack.js";

/** What is read of an activation's result; packages/pool makes it. */
export interface AssembledActivation<Confinement> {
  readonly status: Status;
  readonly reason?: string;
  readonly value?: EncodedValue;
  readonly error?: ActivationError;
  readonly logs: readonly ConsoleLine[];
  readonly logsTruncated: boolean;
  readonly warnings: readonly WarningData[];
  readonly usage: Usage;
  readonly calls: readonly CallRecord[];
  readonly started: boolean;
  readonly confinement: Confinement | null;
}

type NotCompleted = Exclude<Status, "completed">;

const noUsage: Usage = Object.freeze({
  cpuMs: 0,
  wallMs: 0,
  heapPeakBytes: 0,
  hostCalls: 0,
  bytesIn: 0,
  bytesOut: 0,
  queuedMs: 0,
});

/** A run that ended before there was a worker for it. */
export function notStarted(
  runId: string,
  status: NotCompleted,
  error: Omit<RunError, "name"> & { readonly name?: string },
): RunFailedOf<never> {
  return {
    ok: false,
    status,
    error: { ...error, name: error.name ?? status },
    runId,
    started: false,
    logs: [],
    logsTruncated: false,
    usage: noUsage,
    calls: [],
    pending: [],
    warnings: [],
    confinement: null,
  };
}

/** A script that could not be loaded. Mistakes in the source are the script's, a missing file is the caller's. */
export function bundleFailed(runId: string, failure: BundleFailure): RunFailedOf<never> {
  const { message, place, frame } = failure;
  const [status, code, name] = bundleOutcome(failure.code);
  return notStarted(runId, status, {
    code,
    name,
    message,
    ...(place === undefined ? {} : { place }),
    ...(frame === undefined ? {} : { frame }),
  });
}

function bundleOutcome(code: BundleFailure["code"]): readonly [NotCompleted, string, string] {
  switch (code) {
    case "not_found":
    case "unreadable":
    case "unsupported_file":
      return ["invalid_input", "request", "invalid_input"];
    case "source_too_large":
      return ["invalid_input", "source_too_large", "invalid_input"];
    case "no_default_export":
      return ["script_error", "no_entry", "SyntaxError"];
    case "import_not_found":
    case "import_refused":
    case "node_module":
      return ["script_error", "syntax", "ImportError"];
    case "nesting_too_deep":
    case "not_javascript":
    case "syntax_error":
    case "top_level_await":
    case "bundler_deadline":
    case "bundler_failed":
      return ["script_error", "syntax", "SyntaxError"];
  }
}

/** The script's map and remarks, and the limits that its result may have. */
export interface ResultContext {
  readonly runId: string;
  readonly map: ScriptMap;
  readonly warnings: readonly string[];
  readonly limits: Pick<Limits, "resultBytes" | "bodyBytes">;
  /** What a host function does to the world; undefined for one that is not there. */
  readonly effectOf: (name: string) => Effect | undefined;
}

export function assembleResult<Confinement>(
  activation: AssembledActivation<Confinement>,
  context: ResultContext,
): RunResultOf<unknown, Confinement> {
  const report: RunReportBase<Confinement> = {
    runId: context.runId,
    started: activation.started,
    logs: activation.logs.map((line) => logLine(line, context.map)),
    logsTruncated: activation.logsTruncated,
    usage: activation.usage,
    calls: activation.calls.map((call) => settled(call, context.effectOf(call.name))),
    pending: [],
    warnings: [...context.warnings.map((message) => ({ code: "source", message })), ...activation.warnings],
    confinement: activation.confinement,
  };
  if (activation.status === "completed") return completed(report, activation.value, context);
  const error = activation.error ?? { code: activation.reason ?? "bug", message: activation.status };
  return {
    ok: false,
    status: activation.status,
    error: runError(activation.status, error, context.map),
    ...report,
  };
}

/** An end that overtook a call leaves its effect unknown, unless the call only waited or read. */
function settled(call: CallRecord, effect: Effect | undefined): CallRecord {
  if (call.state !== "unknown" || (effect !== "wait" && effect !== "read")) return call;
  return { ...call, state: "cancelled", code: "cancelled" };
}

/** Without a map the text is what the script wrote. */
export function logLine(line: ConsoleLine, map?: ScriptMap): LogLine {
  // A clock that a script set in virtual time may lie beyond what a Date holds.
  const date = new Date(line.timeMs);
  const time = Number.isNaN(date.getTime()) ? String(line.timeMs) : date.toISOString();
  const text = map === undefined ? line.text : mapConsoleText(line.text, map);
  return { level: line.level, time, text };
}

/** TRUST: the value is a script's; here it is decoded within the bounds that the worker was given. */
function completed<Confinement>(
  report: RunReportBase<Confinement>,
  value: EncodedValue | undefined,
  context: ResultContext,
): RunResultOf<unknown, Confinement> {
  const { resultBytes, bodyBytes } = context.limits;
  try {
    if (value === undefined) throw new ValueError("malformed", "the worker sent no result", "");
    const decoded = decodeValue(value, {
      textBytes: resultBytes,
      attachmentBytes: bodyBytes,
      nodes: Math.max(valueBounds.nodes, resultBytes),
    });
    return { ok: true, status: "completed", value: decoded, ...report };
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    const failure = { code: "protocol", name: "violation", message: `the worker's result: ${error.message}` };
    return { ok: false, status: "violation", error: failure, ...report };
  }
}

function runError(status: NotCompleted, error: ActivationError, map: ScriptMap): RunError {
  const base = {
    code: error.code,
    ...(error.limit === undefined ? {} : { limit: error.limit }),
    ...(error.used === undefined ? {} : { used: error.used }),
    ...(error.fact === undefined ? {} : { fact: error.fact }),
  };
  if (error.name === undefined) return { ...base, name: status, message: error.message };
  const { name, message, stack, cause, errors } = errorReport(
    { ...error, name: error.name, stack: error.stack ?? "" },
    map,
  );
  const place = mapStack(error.stack ?? "", map).place;
  const sourceLine = place === undefined ? undefined : map.sourceLine(place);
  const frame = place === undefined || sourceLine === undefined ? undefined : renderFrame(place, sourceLine);
  return {
    ...base,
    name,
    message,
    ...(error.ownCode === undefined ? {} : { ownCode: error.ownCode }),
    stack,
    ...(place === undefined ? {} : { place }),
    ...(frame === undefined ? {} : { frame }),
    ...(cause === undefined ? {} : { cause }),
    ...(errors === undefined ? {} : { errors }),
  };
}

/** Depth and number of nested errors are bounded by the wire format. */
function errorReport(data: ScriptErrorData, map: ScriptMap): ErrorReport {
  const message = engineMessage(data);
  const { stack } = mapStack(data.stack, map);
  const heading = message === "" ? data.name : `${data.name}: ${message}`;
  return {
    name: data.name,
    message,
    stack: stack === "" ? heading : `${heading}\n${stack}`,
    ...(data.code === undefined ? {} : { code: data.code }),
    ...(data.cause === undefined ? {} : { cause: errorReport(data.cause, map) }),
    ...(data.errors === undefined ? {} : { errors: data.errors.map((inner) => errorReport(inner, map)) }),
  };
}

/** What the engine says of an import that is not in the bundle: its loader is never asked for anything else. */
const notBundled = /^could not load module '/;

/** The engine puts the name in quotes, where every other engine and every guide writes `x is not defined`. */
function engineMessage({ name, message }: ScriptErrorData): string {
  if (name !== "ReferenceError") return message;
  if (notBundled.test(message)) return computedImportText;
  return message.replace(/^'([^']+)' is not (defined|initialized)$/, "$1 is not $2");
}
