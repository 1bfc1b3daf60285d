/**
 * Tools of the AI SDK as tools of codemode. Theirs have the same keys; what differs is what `execute` and `needsApproval` are told
 * beside the input, that a schema may be a function or have its JSON Schema later, and that `execute` may yield several
 * results. ai.ts calls it once.
 *
 * Kept true: a tool is called with everything that it would get from the SDK: the signal of the script's call, the messages and
 * the context of the call that runs the script, and an id of its own.
 */

import { CodemodeOptionsError, type ToolsGiven } from "../tool-set.js";
import type { ToolContext } from "../tools.js";
import type { AiCallOptions } from "./ai-types.js";

/** The call of the SDK that runs the script with this id. */
export type OuterCall = (runId: string) => AiCallOptions | undefined;

const aiSdkSchema = Symbol.for("vercel.ai.schema");
const schemaKeys = ["inputSchema", "outputSchema"] as const;

type Fields = Readonly<Record<string, unknown>>;

export async function adoptTools(given: object, outerCall: OuterCall): Promise<ToolsGiven> {
  const adopted: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given))
    adopted[name] = isNamespace(value)
      ? await adoptTools(value, outerCall)
      : await adoptTool(name, value, outerCall);
  return adopted as ToolsGiven; // makeToolSet checks every one of them
}

async function adoptTool(name: string, value: unknown, outerCall: OuterCall): Promise<unknown> {
  if (!isObject(value)) return value;
  const { execute, needsApproval } = value;
  if (
    value["type"] === "provider" ||
    (value["type"] === "dynamic" && execute === undefined) ||
    isClientTool(value)
  )
    throw new CodemodeOptionsError(
      `tool ${JSON.stringify(name)} has no execute: the provider or the client runs it, so that a script cannot; give it to the model beside codemode`,
    );
  const tool: Record<string, unknown> = { ...value };
  for (const key of schemaKeys) if (value[key] !== undefined) tool[key] = await readySchema(value[key]);
  // What the SDK's own tools may have as a function of the context.
  if (typeof tool["description"] === "function") delete tool["description"];
  if (typeof execute === "function")
    tool["execute"] = (input: unknown, context: ToolContext) =>
      lastResult(Reflect.apply(execute, value, [input, callOptions(context, outerCall)]));
  if (typeof needsApproval === "function")
    tool["needsApproval"] = (input: unknown) =>
      Reflect.apply(needsApproval, value, [input, { toolCallId: "", messages: [] }]);
  return tool;
}

/** The SDK's options and codemode's own, which have other names. */
function callOptions(context: ToolContext, outerCall: OuterCall): AiCallOptions & ToolContext {
  const outer = outerCall(context.runId);
  return {
    ...context,
    toolCallId: `${outer?.toolCallId ?? context.runId}:${context.position}`,
    messages: outer?.messages ?? [],
    abortSignal: context.signal,
    ...(outer?.experimental_context === undefined
      ? {}
      : { experimental_context: outer.experimental_context }),
    ...(outer?.context === undefined ? {} : { context: outer.context }),
  };
}

/** A generator's results before the last are for a screen. */
async function lastResult(answer: unknown): Promise<unknown> {
  if (!isObject(answer) || !(Symbol.asyncIterator in answer)) return answer;
  let last: unknown;
  for await (const result of answer as unknown as AsyncIterable<unknown>) last = result; // it has the method
  return last;
}

/** A schema that is made when it is asked for is made now, since its types are in the description. */
async function readySchema(given: unknown): Promise<unknown> {
  const schema: unknown = typeof given === "function" && !("~standard" in given) ? given() : given;
  if (!isObject(schema) || !(aiSdkSchema in schema)) return schema;
  const json = schema["jsonSchema"];
  if (!isObject(json) || !("then" in json)) return schema;
  const validate = schema["validate"];
  return { [aiSdkSchema]: true, jsonSchema: await json, validate };
}

function isClientTool(value: Fields): boolean {
  return "inputSchema" in value && !("execute" in value);
}

/** An object of tools; a tool has a schema, a description or a function `execute`. */
function isNamespace(value: unknown): value is object {
  if (!isObject(value) || Array.isArray(value)) return false;
  const isTool =
    "inputSchema" in value ||
    "parameters" in value ||
    typeof value["description"] === "string" ||
    value["type"] === "provider" ||
    value["type"] === "dynamic";
  return !isTool;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}
