/**
 * `codemodeTool`: one tool of the AI SDK in place of many. The model writes a script that calls them. The SDK need not be
 * installed for this file to load.
 *
 *     import { codemodeTool } from "flowcell/ai";
 *     const codemode = await codemodeTool({ tools: { weather, sendMail } });
 *     await generateText({ model, tools: { codemode }, stopWhen: stepCountIs(8), prompt });
 *
 * Approvals. A tool with `needsApproval` suspends the script at the call. The result says so and names the calls; the model calls
 * this tool again with the text of `resume`; that call needs the SDK's own approval, and approving it approves exactly the
 * calls that the text names. So a person is asked in the way that the program asks for any tool, with `pending` of the first
 * result to show, and the script goes on where it stopped. A program that wants to ask by itself calls
 * `codemode.codemode.resume(runId, …)` instead.
 *
 * Kept true: `execute` never throws for what a script did; its output is JSON, since the SDK stores it.
 */

import type { CallRecord, LogLine, RunError, Status, Usage, WarningData } from "@flowcell/protocol";
import type { WorkerConfinement } from "@flowcell/sandbox";
import { type Codemode, createCodemode } from "../codemode.js";
import type { CodemodeOptions } from "../options.js";
import { codemodePrompt, type PromptOptions } from "../prompt.js";
import type { ExecuteResult } from "../result.js";
import { CodemodeOptionsError } from "../tool-set.js";
import { modelOutput } from "./ai-text.js";
import { adoptTools } from "./ai-tools.js";
import type { AiCallOptions, AiInputSchema, AiModelOutput, AiTool } from "./ai-types.js";
import { type JsonView, jsonView } from "./json-view.js";

export type { AiCallOptions, AiInputSchema, AiModelOutput, AiTool } from "./ai-types.js";
export type { JsonView } from "./json-view.js";

type AiTools = { readonly [name: string]: AiTool | ((...args: never[]) => unknown) | AiTools };

export interface CodemodeToolOptions extends Omit<CodemodeOptions, "tools"> {
  /** Tools of the SDK, those of `createCodemode`, and objects of these, which are namespaces. */
  readonly tools: AiTools;
  /** The tool's description: its budget of tokens, or a text of the program's own. */
  readonly prompt?: PromptOptions;
  /** The most that a model reads of one result, in characters. Default 24,000. */
  readonly modelCharsMax?: number;
}

export interface CodemodeInput {
  readonly code?: string;
  /** What a suspended result said. Only for tools that ask for approval. */
  readonly resume?: string;
}

export interface PendingView {
  readonly callId: string;
  readonly name: string;
  readonly args: readonly JsonView[];
}

/** The result object of every run, as JSON. */
export interface CodemodeOutput {
  readonly ok: boolean;
  readonly status: Status;
  readonly runId: string;
  readonly value?: JsonView;
  readonly error?: RunError;
  readonly logs: readonly LogLine[];
  readonly logsTruncated: boolean;
  readonly usage: Usage;
  readonly calls: readonly CallRecord[];
  readonly warnings: readonly WarningData[];
  readonly confinement: WorkerConfinement | null;
  /** Calls that wait for approval; else empty. */
  readonly pending: readonly PendingView[];
  /** For the model to go on with, while calls wait. */
  readonly resume?: string;
}

/** A tool of the SDK, and what it runs on. */
export interface CodemodeTool {
  readonly description: string;
  readonly inputSchema: AiInputSchema<CodemodeInput>;
  readonly needsApproval?: (input: CodemodeInput) => boolean;
  execute(input: CodemodeInput, options: AiCallOptions): Promise<CodemodeOutput>;
  toModelOutput(result: { readonly output: CodemodeOutput }): AiModelOutput;
  /** For programs that resume by themselves, and for `close`. */
  readonly codemode: Codemode;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const modelCharsDefault = 24_000;
const modelCharsLeast = 1_000;

/** Throws CodemodeOptionsError for tools and options that are wrong. */
export async function codemodeTool(options: CodemodeToolOptions): Promise<CodemodeTool> {
  const { tools, prompt = {}, modelCharsMax = modelCharsDefault, ...own } = options;
  if (typeof tools !== "object" || tools === null)
    throw new CodemodeOptionsError("option tools must be an object of tools");
  if (!Number.isSafeInteger(modelCharsMax) || modelCharsMax < modelCharsLeast)
    throw new CodemodeOptionsError(`option modelCharsMax must be a whole number, ${modelCharsLeast} or more`);
  const outerCalls = new Map<string, AiCallOptions>();
  const adopted = await adoptTools(tools, (runId) => outerCalls.get(runId));
  const codemode = await createCodemode({ ...own, tools: adopted });
  const asks = codemode.tools.tools.some(({ needsApproval }) => needsApproval !== false);
  if (asks) throw new CodemodeOptionsError("tools with needsApproval cannot be given to a script");
  return {
    description: codemodePrompt(codemode.tools, { template: usualTemplate(asks), ...prompt }),
    inputSchema: inputSchema(asks),
    ...(asks ? { needsApproval: ({ resume }: CodemodeInput) => resume !== undefined } : {}),
    execute: (input, call) => execute(codemode, outerCalls, input, call),
    toModelOutput: ({ output }) => modelOutput(output, modelCharsMax),
    codemode,
    close: () => codemode.close(),
    [Symbol.asyncDispose]: () => codemode.close(),
  };
}

async function execute(
  codemode: Codemode,
  outerCalls: Map<string, AiCallOptions>,
  input: CodemodeInput,
  call: AiCallOptions,
): Promise<CodemodeOutput> {
  const ids: string[] = [];
  const options = {
    ...(call.abortSignal === undefined ? {} : { signal: call.abortSignal }),
    onRun: (runId: string) => {
      ids.push(runId);
      outerCalls.set(runId, call);
    },
  };
  try {
    return outputOf(await codemode.execute(input.code ?? "", options));
  } finally {
    for (const id of ids) outerCalls.delete(id);
  }
}

function outputOf(result: ExecuteResult): CodemodeOutput {
  const { ok, status, runId, logs, logsTruncated, usage, calls, warnings, confinement } = result;
  const pending = result.pending.map(({ callId, name, args }) => ({
    callId,
    name,
    args: args.map(jsonView),
  }));
  const value = result.ok && result.value !== undefined ? { value: jsonView(result.value) } : {};
  return {
    ok,
    status,
    runId,
    ...value,
    ...(result.ok || status === "suspended" ? {} : { error: result.error }),
    logs,
    logsTruncated,
    usage,
    calls,
    warnings,
    confinement,
    pending,
  };
}

function inputSchema(asks: boolean): AiInputSchema<CodemodeInput> {
  const json = inputJson(asks);
  return {
    "~standard": {
      version: 1,
      vendor: "flowcell",
      validate: (value) => checkInput(value, asks),
      jsonSchema: { input: () => structuredClone(json), output: () => structuredClone(json) },
    },
  };
}

function inputJson(asks: boolean): Record<string, unknown> {
  const code = {
    type: "string",
    description: "The script: the body of an async function, JavaScript or TypeScript.",
  };
  if (!asks) return { type: "object", properties: { code }, required: ["code"], additionalProperties: false };
  const resume = {
    type: "string",
    description: "Instead of code: the text that a result asked for, to go on after a person approved.",
  };
  return { type: "object", properties: { code, resume }, additionalProperties: false };
}

type InputVerdict = ReturnType<AiInputSchema<CodemodeInput>["~standard"]["validate"]>;

function checkInput(value: unknown, asks: boolean): InputVerdict {
  const refuse = (message: string): InputVerdict => ({ issues: [{ message }] });
  const wanted = asks ? 'either { "code": text } or { "resume": text }' : '{ "code": text }';
  if (typeof value !== "object" || value === null) return refuse(`the input must be ${wanted}`);
  const { code, resume, ...rest }: { code?: unknown; resume?: unknown } = value;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    return refuse(`unknown key ${JSON.stringify(unknown)}: the input must be ${wanted}`);
  // Models fill in every key that they know of.
  if (asks && typeof resume === "string" && resume !== "") {
    return code === undefined || code === ""
      ? { value: { resume } }
      : refuse("give code or resume, not both");
  }
  return typeof code === "string" ? { value: { code } } : refuse(`the input must be ${wanted}`);
}

function usualTemplate(asks: boolean): string {
  const head = "Runs one script that calls tools, so that many calls, loops and filters take one turn.";
  const approval =
    "\n- Some calls need a person's approval: the script then stops there, and the result says how to go on.";
  return `${head}\n{{rules}}${asks ? approval : ""}\n\n{{types}}`;
}
