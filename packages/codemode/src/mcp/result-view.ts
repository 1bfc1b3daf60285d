/**
 * The result of an execution as MCP has it: structured content that fits `executeOutput`, the same for a model as text, and what
 * tools answered beside text. server.ts sends it.
 *
 * The text is JSON too, without what a model has no use for (usage, confinement, calls that were fine), and bounded: a value or
 * a log that is too long is cut, and says so. Structured content is whole; its bound is the execution's `resultBytes`.
 * Kept true: what the script did wrong is `isError`, what it waits for is not.
 * TRUST: values, errors and lines are a script's; content is a server's.
 */

import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/sdk/types.js";
import { type JsonView, jsonView } from "../adapters/json-view.js";
import type { ExecuteResult } from "../result.js";
import type { Box } from "./attachments.js";

const textCharsMost = 24_000;
const logCharsMost = 6_000;
/** Of all pending calls together, but enough of each to know it. */
const argumentsCharsMost = 16_000;
const argumentsCharsLeast = 200;
/** Of each part: message, stack, cause. */
const errorCharsMost = 4_000;
const calledMost = 50;

const textSchema = { type: "string" } as const;
const countSchema = { type: "number" } as const;

/** JSON Schema of the structured content of `execute` and `resume`. */
export const executeOutput = {
  type: "object" as const,
  properties: {
    ok: { type: "boolean", description: "Whether the script completed" },
    status: {
      ...textSchema,
      description: "completed, suspended (answer pending with resume), script_error, budget_exceeded, …",
    },
    runId: textSchema,
    value: { description: "What the script returned" },
    error: {
      type: "object",
      properties: { code: textSchema, name: textSchema, message: textSchema, stack: textSchema },
      required: ["code", "name", "message"],
    },
    logs: {
      type: "array",
      items: {
        type: "object",
        properties: { level: textSchema, time: textSchema, text: textSchema },
        required: ["level", "time", "text"],
      },
    },
    logsTruncated: { type: "boolean" },
    usage: {
      type: "object",
      properties: { cpuMs: countSchema, wallMs: countSchema, hostCalls: countSchema },
      required: ["cpuMs", "wallMs", "hostCalls"],
    },
    calls: {
      type: "array",
      items: {
        type: "object",
        properties: { position: countSchema, name: textSchema, state: textSchema, code: textSchema },
        required: ["position", "name", "state"],
      },
    },
    pending: {
      type: "array",
      description: "Calls that wait for approval",
      items: {
        type: "object",
        properties: { callId: textSchema, name: textSchema, args: { type: "array" } },
        required: ["callId", "name", "args"],
      },
    },
    attachments: {
      type: "array",
      description: "What follows the text in the content of this result",
      items: { type: "object", properties: { type: textSchema }, required: ["type"] },
    },
    warnings: {
      type: "array",
      items: {
        type: "object",
        properties: { code: textSchema, message: textSchema },
        required: ["code", "message"],
      },
    },
    confinement: { type: ["object", "null"], description: "The layers that held this very worker" },
  },
  required: ["ok", "status", "runId", "logs", "usage", "calls", "pending", "warnings", "confinement"],
};

type Json = { readonly [key: string]: unknown };

export function resultView(result: ExecuteResult, box: Box): CallToolResult {
  const { ok, status, runId, logs, logsTruncated, usage, calls, confinement } = result;
  const named = new Map(box.kept.flatMap((block, index) => dataOf(block, index)));
  const show = (value: unknown): JsonView => withoutData(jsonView(value), named);
  const value = result.ok && result.value !== undefined ? { value: show(result.value) } : {};
  const error = result.ok || status === "suspended" ? {} : { error: result.error };
  const pending = result.pending.map(({ callId, name, args }) => ({ callId, name, args: args.map(show) }));
  const attachments = box.kept.map(attachmentOf);
  const warnings = [...result.warnings, ...droppedWarning(box)];
  const structured: Json = {
    ok,
    status,
    runId,
    ...value,
    ...error,
    logs,
    logsTruncated,
    usage,
    calls,
    pending,
    ...(attachments.length === 0 ? {} : { attachments }),
    warnings,
    confinement,
  };
  const text = {
    ok,
    status,
    ...value,
    ...error,
    ...logText(
      logs.map((line) => (line.level === "log" ? line.text : `[${line.level}] ${line.text}`)),
      logsTruncated,
    ),
    ...(ok || calls.length === 0 || status === "suspended"
      ? {}
      : { calls: calls.slice(0, calledMost).map(({ name, state }) => `${name} ${state}`) }),
    ...(pending.length === 0 ? {} : waiting(runId, pending)),
    ...(attachments.length === 0 ? {} : { attachments }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.map(({ message }) => message) }),
  };
  return {
    content: [{ type: "text", text: bounded(text) }, ...box.kept],
    structuredContent: structured,
    ...(ok || status === "suspended" ? {} : { isError: true }),
  };
}

function waiting(
  runId: string,
  pending: readonly { callId: string; name: string; args: JsonView[] }[],
): Json {
  const most = Math.max(argumentsCharsLeast, Math.floor(argumentsCharsMost / pending.length));
  return {
    runId,
    pending: pending.map(({ callId, name, args }) => ({
      callId,
      name,
      args: cutJson(args, most),
    })),
    next:
      "These calls need a person's approval. Ask the person, then call the tool resume with runId and an answer for each callId. " +
      "What came before them is done: do not run the script again.",
  };
}

function logText(lines: readonly string[], truncated: boolean): Json {
  if (lines.length === 0) return {};
  const kept: string[] = [];
  let left = logCharsMost;
  for (const line of lines) {
    if (line.length > left) {
      kept.push(`… (${lines.length - kept.length} more lines; log less)`);
      return { logs: kept };
    }
    kept.push(line);
    left -= line.length;
  }
  return { logs: truncated ? [...kept, "… (more was not kept)"] : kept };
}

/** JSON of about `textCharsMost` characters at most: the value is cut first, then texts of the error. */
function bounded(text: Json): string {
  const whole = JSON.stringify(text);
  if (whole.length <= textCharsMost) return whole;
  const rest = { ...text, ...("error" in text ? { error: cutTexts(text["error"]) } : {}) };
  if (text["value"] === undefined) return JSON.stringify(rest);
  const left = textCharsMost - JSON.stringify({ ...rest, value: null }).length;
  return JSON.stringify({ ...rest, value: cutJson(text["value"], Math.max(1_000, left)) });
}

function cutTexts(error: unknown): Json {
  const entries: [string, unknown][] = Object.entries(error ?? {});
  return Object.fromEntries(entries.map(([key, value]) => [key, cutJson(value, errorCharsMost)]));
}

/** The value itself, or the beginning of its text. */
function cutJson(value: unknown, most: number): unknown {
  const json = JSON.stringify(value);
  if (json.length <= most) return value;
  return cut(typeof value === "string" ? value : json, most);
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most)}… (cut here, ${text.length - most} more characters; return less)`;
}

function droppedWarning({ kept, dropped }: Box): { code: string; message: string }[] {
  if (dropped === 0) return [];
  const message = `${dropped} attachments of tools had no room beside ${kept.length}; call fewer such tools in one script`;
  return [{ code: "attachments", message }];
}

function attachmentOf(block: ContentBlock): Json {
  switch (block.type) {
    case "image":
    case "audio":
      return { type: block.type, mimeType: block.mimeType, base64Chars: block.data.length };
    case "resource":
      return { type: block.type, uri: block.resource.uri };
    case "resource_link":
      return { type: block.type, uri: block.uri, name: block.name };
    case "text":
      return { type: block.type };
  }
}

function dataOf(block: ContentBlock, index: number): [string, string][] {
  const data =
    block.type === "image" || block.type === "audio"
      ? block.data
      : block.type === "resource" && "blob" in block.resource
        ? block.resource.blob
        : undefined;
  return typeof data === "string" && data.length > 256 ? [[data, `[attachment ${index}]`]] : [];
}

/** A script that returns a picture returns it once: as the attachment. */
function withoutData(view: JsonView, named: ReadonlyMap<string, string>): JsonView {
  if (named.size === 0) return view;
  if (typeof view === "string") return named.get(view) ?? view;
  if (Array.isArray(view)) return view.map((item) => withoutData(item, named));
  if (typeof view !== "object" || view === null) return view;
  // Entries, since a key may be `__proto__`.
  return Object.fromEntries(Object.entries(view).map(([key, item]) => [key, withoutData(item, named)]));
}
