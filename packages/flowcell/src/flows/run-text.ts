/**
 * A run as people and `--json` see it: the one result object, as far as the journal knows it. Commands that wait for a run
 * end here, so that each of them prints the same and ends with the same code.
 *
 * TRUST: values, logs and error texts are a script's; they are made printable for terminals.
 */

import { printable } from "@flowcell/bundle";
import type { PendingReport, RunErrorData, RunReport } from "@flowcell/flows";
import { outcomeTable } from "@flowcell/protocol";
import { bytesText, codeText, indented, inMessage, logText, msText, valueText } from "../cli/human.js";
import { taggedJson } from "../tagged-json.js";
import type { Context } from "./context.js";
import { block, plural, table, timeText } from "./tables.js";

/** Prints the run and answers the exit code that its outcome has. */
export function printRun(context: Context, report: RunReport): number {
  const { streams } = context;
  if (context.json) {
    context.object(runJson(report));
    return runExitCode(report);
  }
  for (const line of report.logs) streams.err(logText(line));
  if (report.ok) streams.out(valueText(report.value, streams.outIsTerminal));
  else if (report.error !== undefined && report.state === "finished") streams.err(errorText(report));
  streams.err(summaryText(report));
  return runExitCode(report);
}

/** A run that is neither finished nor suspended goes on without us: as if suspended. */
export function runExitCode({ status }: RunReport): number {
  return outcomeTable[status ?? "suspended"].exitCode;
}

/** What JSON cannot hold is tagged, where a script's values stand. */
export function runJson(report: RunReport): unknown {
  return {
    ...report,
    ...(report.ok ? { value: taggedJson(report.value) } : {}),
    ...(report.error === undefined ? {} : { error: errorJson(report.error) }),
    pending: report.pending.map((one) => ("args" in one ? { ...one, args: taggedJson(one.args) } : one)),
  };
}

function errorJson(error: RunErrorData): unknown {
  const { expected, actual } = error;
  return {
    ...error,
    ...(expected === undefined ? {} : { expected: taggedJson(expected) }),
    ...(actual === undefined ? {} : { actual: taggedJson(actual) }),
  };
}

function errorText({ status, error }: RunReport): string {
  if (error === undefined) return "";
  const lines = [
    `${status ?? "failed"} (${codeText(error)}): ${indented(heading(error), inMessage)}`,
    ...frames(error),
  ];
  for (const inner of error.errors ?? []) lines.push(...nested("error", inner, 1));
  if (error.cause !== undefined) lines.push(...nested("cause", error.cause, 1));
  return `${lines.join("\n")}\n`;
}

function heading({ name, message, stack }: RunErrorData): string {
  if (stack === undefined) return message;
  return message === "" ? name : `${name}: ${message}`;
}

function frames({ stack }: RunErrorData): readonly string[] {
  return (stack ?? "")
    .split("\n")
    .filter((line) => line.startsWith("    at "))
    .map(printable);
}

const nestedMax = 8;

function nested(what: string, error: RunErrorData, depth: number): readonly string[] {
  if (depth > nestedMax) return [];
  const indent = "  ".repeat(depth);
  return [
    `${indent}${what}: ${printable(heading({ ...error, stack: "" }))}`,
    ...frames(error).map((line) => `${indent}${line}`),
    ...(error.errors ?? []).flatMap((inner) => nested("error", inner, depth + 1)),
    ...(error.cause === undefined ? [] : nested("cause", error.cause, depth + 1)),
  ];
}

/** How it stands, in a line; below it what it waits for and what to do. */
export function summaryText(report: RunReport): string {
  const { runId, state, status, usage, pending, dueAt, warnings, confinement } = report;
  const cost = `${msText(usage.wallMs)}, ${msText(usage.cpuMs)} CPU, ${plural(usage.hostCalls, "host call")}`;
  const held = layersOf(confinement);
  const lines = [
    ...warnings.map(({ code, message }) => `warning (${printable(code)}): ${indented(message, inMessage)}`),
    `${status ?? state}: ${runId} in ${cost}${held}`,
    ...pending.flatMap((one) => pendingLines(one)),
    ...(pending.length > 0 || dueAt === null ? [] : [`  a timer of the script, until ${timeText(dueAt)}`]),
    ...unknownLines(report),
  ];
  return `${lines.join("\n")}\n`;
}

export function pendingLines(pending: PendingReport): readonly string[] {
  const { callId, name, waitsFor, dueAt, title } = pending;
  const due = dueAt === null ? "" : `, until ${timeText(dueAt)}`;
  const lines = [`  ${printable(name)} waits for ${printable(waitsFor)}${due}`];
  if (title !== undefined) lines.push(`    ${printable(title)}`);
  if (callId !== null) lines.push(`    answer: flowcell approve ${callId}   or: flowcell reject ${callId}`);
  return lines;
}

/** A finished run is not reconciled: nothing goes on with what somebody finds out. */
function unknownLines({ runId, state, calls }: RunReport): readonly string[] {
  const unknown = calls.filter((call) => call.state === "unknown");
  if (unknown.length === 0) return [];
  return [
    ...unknown.map(
      ({ position, name, idempotencyKey }) =>
        `  call ${position} ${printable(name)}: nobody knows whether it happened (idempotency key ${idempotencyKey})`,
    ),
    state === "finished"
      ? "  the run is over and takes no answer: find out by the key whether it happened, and put right what it left"
      : `  find out, then: flowcell reconcile ${runId} ${unknown[0]?.position ?? ""} --observed --value … | --not-applied | --cancel`,
  ];
}

function layersOf(confinement: unknown): string {
  const names = liveLayers(confinement).map(({ layer }) => layer);
  return names.length === 0 ? "" : ` · confined by ${names.join(", ")}`;
}

function layerLines(confinement: unknown): readonly string[] {
  return liveLayers(confinement).map(({ layer, detail }) => `${layer}: ${detail}`);
}

/** The layers that were live for the worker, as the sandbox wrote them down and the journal kept them. */
function liveLayers(confinement: unknown): readonly { readonly layer: string; readonly detail: string }[] {
  if (typeof confinement !== "object" || confinement === null || !("layers" in confinement)) return [];
  if (!Array.isArray(confinement.layers)) return [];
  return confinement.layers.flatMap((one: unknown) => {
    if (typeof one !== "object" || one === null || !("layer" in one)) return [];
    const detail = "detail" in one ? printable(String(one.detail)) : "";
    return [{ layer: printable(String(one.layer)), detail }];
  });
}

/** Everything about one run. */
export function detailText(report: RunReport): string {
  const { runId, flow, versionHash, trigger, attempt, createdAt, startedAt, finishedAt, activations } =
    report;
  const calls = report.calls.map((call) => [
    String(call.position),
    call.name,
    call.effect,
    call.state + (call.code === null ? "" : ` (${call.code})`),
    call.durationMs === null ? "-" : msText(call.durationMs),
    bytesText(call.inputBytes),
    bytesText(call.outputBytes),
  ]);
  const heading = ["call", "name", "effect", "state", "took", "in", "out"];
  const lines = [
    `${runId} of ${flow} ${versionHash.slice(0, 12)}`,
    `started by ${triggerText(trigger)}${attempt > 1 ? `, attempt ${attempt}` : ""}, ${plural(activations, "activation")}`,
    `created ${timeText(createdAt)}, started ${timeText(startedAt)}, finished ${timeText(finishedAt)}`,
    ...block("calls:", calls.length === 0 ? [] : table(heading, calls).split("\n")),
    ...block("confined by, in its last worker:", layerLines(report.confinement)),
  ];
  return `${lines.join("\n")}\n`;
}

export function triggerText(trigger: RunReport["trigger"]): string {
  switch (trigger.kind) {
    case "manual":
      return printable(trigger.by);
    case "cron":
      return `cron, for ${timeText(trigger.scheduledAt)}`;
    case "event":
      return `event ${printable(trigger.name)}`;
    case "flow":
      return `run ${trigger.runId}`;
    case "retry":
      return `retry of ${trigger.of}`;
  }
}
