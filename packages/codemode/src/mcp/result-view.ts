/**
 * The result of an execution as MCP has it: structured content that fits `executeOutput`, the same for a model as text, and what
 * tools answered beside text. server.ts sends it.
 *
 * The text is JSON too, without what a model has no use for (usage, confinement, calls that were fine), and bounded by
 * bounded-text.ts. Structured content is whole; its bound is the execution's `resultBytes`.
 * Kept true: what the script did wrong is `isError`, what it waits for is not.
 * TRUST: values, errors and lines are a script's; content is a server's.
 */

import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/sdk/types.js";
import { type JsonView, jsonView } from "../adapters/json-view.js";
import type { ExecuteResult } from "../result.js";
import type { Box } from "./attachments.js";
import {
  attachmentsText,
  boundedText,
  callsText,
  type Json,
  logText,
  type PendingView,
  pendingText,
  warningsText,
} from "./bounded-text.js";

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

const nothing = "The script returned nothing. Return what you want to see.";

/** `asks`: the server asks the person itself, and nobody answered so far. */
export function resultView(result: ExecuteResult, box: Box, asks = false): CallToolResult {
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
    ...(ok && !("value" in value) ? { note: nothing } : {}),
    ...error,
    ...logText(logs, logsTruncated),
    ...(ok || calls.length === 0 || status === "suspended" ? {} : callsText(calls)),
    ...(pending.length === 0 ? {} : waiting(runId, pending, asks)),
    ...attachmentsText(attachments),
    ...warningsText(warnings),
  };
  return {
    content: [{ type: "text", text: boundedText(text) }, ...box.kept],
    structuredContent: structured,
    ...(ok || status === "suspended" ? {} : { isError: true }),
  };
}

function waiting(runId: string, pending: readonly PendingView[], asks: boolean): Json {
  return {
    runId,
    ...pendingText(pending),
    next: asks ? nextAsks : nextResume,
  };
}

const nextAsks =
  "These calls need a person's approval, and the person has not answered. Call the tool resume with runId to ask again. " +
  "What came before them is done: do not run the script again.";
const nextResume =
  "These calls need a person's approval. Ask the person, then call the tool resume with runId and an answer for each callId. " +
  "What came before them is done: do not run the script again.";

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
