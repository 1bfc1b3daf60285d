/**
 * A run for people: the result on standard output, everything else on standard error.
 *
 * TRUST: texts of a script reach a terminal here. Control characters are replaced, so that a script cannot move the cursor,
 * hide lines or speak to the terminal; a text result that goes to a file or a pipe is written as it is.
 */

import { inspect } from "node:util";
import { printable, visibleJson } from "@flowcell/bundle";
import type { LimitName } from "@flowcell/protocol";
import type { ErrorReport, LogLine, RunError, RunFailed, RunResult } from "../result.js";

const KiB = 1024;
const MiB = 1024 * KiB;

export function bytesText(bytes: number): string {
  if (bytes < KiB) return `${bytes} B`;
  return bytes < MiB ? `${(bytes / KiB).toFixed(1)} KiB` : `${(bytes / MiB).toFixed(1)} MiB`;
}

export function msText(ms: number): string {
  return ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

/** Keeps line ends; everything else that steers a terminal is made visible. */
export function safeLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** The first line as it is, further ones behind `lead`: what they say cannot be taken for lines of flowcell's own. */
export function indented(text: string, lead: string): string {
  return safeLines(text).replaceAll("\n", `\n${lead}`);
}

/** A mistake or a remark of the command line: one line, as a rule. */
export function remarkText(text: string): string {
  return `flowcell: ${indented(text, "  ")}\n`;
}

/** What is told of an exception that nobody expects. */
export function bugText(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `flowcell: this is a bug in flowcell, please report it.\n  ${indented(text, "  ")}\n`;
}

/** One JSON object for `--json`. */
export function objectText(value: unknown): string {
  return `${visibleJson(JSON.stringify(value, null, 2))}\n`;
}

/** `[warn] text`; further lines of one console call are indented below it. */
export function logText(line: LogLine): string {
  const mark = `[${line.level}] `;
  return `${mark}${indented(line.text, " ".repeat(mark.length))}\n`;
}

/** What goes to standard output; "" for a result of undefined. */
export function valueText(value: unknown, terminal: boolean): string {
  if (value === undefined) return "";
  if (typeof value === "string") {
    const text = terminal ? safeLines(value) : value;
    return text.endsWith("\n") ? text : `${text}\n`;
  }
  if (!isJson(value)) {
    const text = inspect(value, inspectOptions);
    return `${terminal ? safeLines(text) : text}\n`;
  }
  const json = JSON.stringify(value, null, 2);
  return `${terminal ? visibleJson(json) : json}\n`;
}

const inspectOptions = {
  depth: null,
  maxArrayLength: null,
  maxStringLength: null,
  customInspect: false,
  compact: 3,
  breakLength: 100,
} as const;

/** Whether JSON text shows the value as it is. Values are bounded trees, possibly with cycles. */
function isJson(value: unknown): boolean {
  const open: unknown[] = [value];
  const seen = new Set<unknown>();
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string" || typeof next === "boolean" || next === null) continue;
    if (typeof next === "number" && Number.isFinite(next) && !Object.is(next, -0)) continue;
    if (typeof next !== "object" || seen.has(next)) return false;
    seen.add(next);
    if (!Array.isArray(next) && Object.getPrototypeOf(next) !== Object.prototype) return false;
    const inner = Array.isArray(next) ? Array.from(next) : Object.values(next);
    if (inner.includes(undefined)) return false;
    open.push(...inner);
  }
  return true;
}

/** The limit to raise for each way to exhaust one. */
const raisable: Readonly<Record<string, LimitName>> = {
  cpu: "cpuMs",
  wall: "wallMs",
  memory: "heapBytes",
  stack: "stackBytes",
  host_calls: "hostCalls",
  result_size: "resultBytes",
};

/** The reason, and the code that the script's error brought along. */
export function codeText({ code, ownCode }: Readonly<{ code: string; ownCode?: string }>): string {
  return ownCode === undefined ? printable(code) : `${printable(code)}, its code ${printable(ownCode)}`;
}

export function failureText(result: RunFailed): string {
  const { status, error, calls } = result;
  const lines = [`${status} (${codeText(error)}): ${indented(headline(error), inMessage)}`];
  if (error.stack !== undefined) lines.push(...frames(error.stack, error));
  else if (error.frame !== undefined) lines.push(safeLines(error.frame));
  for (const inner of error.errors ?? []) lines.push(...nested("error", inner, 1));
  if (error.cause !== undefined) lines.push(...nested("cause", error.cause, 1));
  if (error.remedy !== undefined) lines.push(`what to do: ${indented(error.remedy, inMessage)}`);
  if (status === "budget_exceeded") {
    const limit = raisable[error.code];
    if (limit !== undefined) lines.push(`ask for more with --limit ${limit}=N`);
  }
  for (const call of calls) {
    if (call.state !== "unknown") continue;
    const key = `idempotency key ${call.idempotencyKey}`;
    lines.push(
      `call ${call.position} ${printable(call.name)} was started and its outcome is unknown (${key})`,
    );
  }
  if (!result.started && status !== "script_error" && status !== "invalid_input")
    lines.push("nothing of the script ran");
  return `${lines.join("\n")}\n`;
}

/** Where further lines of a message stand. */
export const inMessage = "    ";

function headline(error: RunError): string {
  if (error.stack === undefined) return error.message;
  return error.message === "" ? error.name : `${error.name}: ${error.message}`;
}

/** The frames below the heading, the source line after the first that has a position: it is that one's. */
function frames(stack: string, error: RunError): string[] {
  const lines = stackFrames(stack);
  const first = lines.findIndex((line) => /:\d+:\d+\)?$/.test(line));
  if (error.frame !== undefined) lines.splice(first + 1, 0, safeLines(error.frame));
  return lines;
}

function stackFrames(stack: string): string[] {
  return stack
    .split("\n")
    .filter((line) => line.startsWith("    at "))
    .map(printable);
}

const nestedMax = 8;

function nested(what: string, error: ErrorReport, depth: number): string[] {
  if (depth > nestedMax) return [];
  const indent = "  ".repeat(depth);
  const heading = error.message === "" ? error.name : `${error.name}: ${error.message}`;
  const lines = [
    `${indent}${what}: ${printable(heading)}`,
    ...stackFrames(error.stack).map((line) => `${indent}${line}`),
  ];
  for (const inner of error.errors ?? []) lines.push(...nested("error", inner, depth + 1));
  if (error.cause !== undefined) lines.push(...nested("cause", error.cause, depth + 1));
  return lines;
}

/** Warnings, then one line: how it ended, what it cost, what held it. */
export function summaryText(result: RunResult): string {
  const { usage, warnings, logsTruncated, confinement } = result;
  const lines = warnings.map(
    ({ code, message }) => `warning (${printable(code)}): ${indented(message, inMessage)}`,
  );
  if (logsTruncated)
    lines.push("warning: the log was cut at its limit (--limit outputBytes=N asks for more)");
  if (!result.started) return lines.map((line) => `${line}\n`).join("");
  const parts = [msText(usage.wallMs), `${msText(usage.cpuMs)} CPU`];
  if (usage.heapPeakBytes > 0) parts.push(`${bytesText(usage.heapPeakBytes)} heap`);
  parts.push(count(usage.hostCalls, "host call"));
  const held =
    confinement === null ? "" : ` · confined by ${confinement.layers.map(({ layer }) => layer).join(", ")}`;
  lines.push(`${result.status} in ${parts.join(", ")}${held}`);
  return lines.map((line) => `${line}\n`).join("");
}
