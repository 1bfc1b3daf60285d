/**
 * What a model reads of an execution: the value, or the error with the lines of its script and which calls were made, or
 * what a script waits for; then the console. ai.ts gives it to the SDK.
 *
 * Kept true: the text is bounded and says where it was cut; it is made of nothing but the output's own fields, since the SDK
 * asks for it again when it reads a stored conversation.
 * TRUST: values, errors and lines are a script's, to be read by the model that wrote it.
 */

import type { CallRecord, RunError } from "@flowcell/protocol";
import type { CodemodeOutput } from "./ai-tool.js";
import type { AiModelOutput } from "./ai-types.js";
import type { JsonView } from "./json-view.js";

const callsShown = 20;
const argumentsCharsMost = 400;

export function modelOutput(output: CodemodeOutput, charsMost: number): AiModelOutput {
  const console = consoleText(output, Math.floor(charsMost / 4));
  const most = charsMost - console.length;
  if (output.ok)
    return { type: "text", value: cut(valueText(output.value), most, "return less of it") + console };
  if (output.status === "suspended")
    return { type: "text", value: cut(waitingText(output), most, "ask a person") + console };
  return {
    type: "error-text",
    value: cut(failureText(output.error, output.calls), most, "see the log") + console,
  };
}

function valueText(value: JsonView | undefined): string {
  if (value === undefined) return "The script returned nothing. Return what you want to see.";
  return typeof value === "string" ? value : JSON.stringify(value, undefined, isSmall(value) ? undefined : 1);
}

/** One that a line shows better than a column. */
function isSmall(value: JsonView): boolean {
  return JSON.stringify(value).length <= 120;
}

function failureText(error: RunError | undefined, calls: readonly CallRecord[]): string {
  if (error === undefined) return "The script did not complete.";
  const heading = error.stack ?? `${error.name}: ${error.message}`;
  const parts = [
    error.name === error.code || error.stack !== undefined ? heading : `${heading} (${error.code})`,
  ];
  if (error.ownCode !== undefined) parts.push(`code ${error.ownCode}`);
  if (error.limit !== undefined)
    parts.push(`limit ${error.limit}${error.used === undefined ? "" : `, used ${error.used}`}`);
  if (error.frame !== undefined) parts.push(error.frame);
  if (calls.length > 0) parts.push(callsText(calls));
  return parts.join("\n");
}

/** So that a second try does not repeat what was done. */
function callsText(calls: readonly CallRecord[]): string {
  const shown = calls.slice(0, callsShown).map(({ name, state }) => `${name} ${state}`);
  const more = calls.length > callsShown ? `, and ${calls.length - callsShown} more` : "";
  return `Calls made before it ended: ${shown.join(", ")}${more}.`;
}

function waitingText({ pending, resume }: CodemodeOutput): string {
  const calls = pending.map(({ name, args }) => `- ${name}(${argumentsText(args)})`);
  return [
    `The script has stopped at ${pending.length === 1 ? "a call" : `${pending.length} calls`} that a person must approve:`,
    ...calls,
    "What came before is done and is not repeated. Do not write the script again.",
    `To ask the person and go on, call this tool with ${JSON.stringify({ resume })}.`,
  ].join("\n");
}

function argumentsText(args: readonly JsonView[]): string {
  return cut(args.map((one) => JSON.stringify(one)).join(", "), argumentsCharsMost, "");
}

function consoleText({ logs, logsTruncated }: CodemodeOutput, most: number): string {
  if (logs.length === 0) return "";
  const lines = logs.map(({ level, text }) => (level === "log" ? text : `[${level}] ${text}`)).join("\n");
  const mark = logsTruncated ? "\n(more was not kept)" : "";
  return `\n\nConsole:\n${cut(lines, most, "log less")}${mark}`;
}

function cut(text: string, most: number, remedy: string): string {
  if (text.length <= most) return text;
  const hint = remedy === "" ? "" : `; ${remedy}`;
  return `${text.slice(0, most)}… (${text.length - most} more characters${hint})`;
}
