/**
 * The tool that the AI SDK calls: its input, the execution of a script and the going on with one, and the output as JSON. ai.ts
 * makes it over a codemode.
 *
 * Kept true: nothing of an execution throws; the output is JSON; a call is approved only by an input that the SDK asked a
 * person about, since every input with `resume` needs that.
 */

import type { CallRecord, LogLine, RunError, Status, Usage, WarningData } from "@flowcell/protocol";
import type { WorkerConfinement } from "@flowcell/sandbox";
import type { ExecuteOptions, ResumeOptions } from "../options.js";
import type { ExecuteResult } from "../result.js";
import { parseResume, type ResumeRequest, resumeText } from "./ai-resume.js";
import { modelOutput } from "./ai-text.js";
import type { AiCallOptions, AiInputSchema, AiModelOutput } from "./ai-types.js";
import { type JsonView, jsonView } from "./json-view.js";

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

/** A tool of the SDK. */
export interface ScriptTool {
  readonly description: string;
  readonly inputSchema: AiInputSchema<CodemodeInput>;
  readonly needsApproval?: (input: CodemodeInput) => boolean;
  execute(input: CodemodeInput, options: AiCallOptions): Promise<CodemodeOutput>;
  toModelOutput(result: { readonly output: CodemodeOutput }): AiModelOutput;
  /**
   * For programs that ask by themselves, or end what a person refused: answers every call that `resume` of an output names, and
   * goes on with the script. To a refusal the script is told `value`, a reason.
   */
  answer(resume: string, approve: boolean, value?: unknown): Promise<CodemodeOutput>;
  /**
   * The calls that a `resume` names, to show to whoever is asked: the SDK's request for an approval holds only that text, and
   * `generateText` has no output of a call that was approved. Of this process; undefined for others.
   */
  pendingOf(resume: string): readonly PendingView[] | undefined;
}

export interface Approval {
  readonly callId: string;
  readonly approve: boolean;
  readonly value?: unknown;
}

export type ResumeScript = (
  runId: string,
  answers: readonly Approval[],
  options?: ResumeOptions,
) => Promise<ExecuteResult>;

/** What a script's tool needs of a codemode. */
export interface ScriptToolParts {
  readonly description: string;
  readonly modelCharsMax: number;
  execute(code: string, options: ExecuteOptions): Promise<ExecuteResult>;
  /** Only where a tool may ask for approval. */
  readonly resume: ResumeScript | undefined;
  /** Which call of the SDK each execution belongs to, while it runs. */
  readonly outerCalls: Map<string, AiCallOptions>;
}

/** Suspended outputs that `pendingOf` remembers. */
const suspendedMost = 1024;

export function scriptTool(parts: ScriptToolParts): ScriptTool {
  const asks = parts.resume !== undefined;
  const suspended = new Map<string, readonly PendingView[]>();
  const seen = (output: CodemodeOutput): CodemodeOutput => {
    if (output.resume !== undefined) suspended.set(output.resume, output.pending);
    for (const oldest of suspended.keys()) {
      if (suspended.size <= suspendedMost) break;
      suspended.delete(oldest);
    }
    return output;
  };
  return {
    description: parts.description,
    inputSchema: inputSchema(asks),
    ...(asks ? { needsApproval: ({ resume }: CodemodeInput) => resume !== undefined } : {}),
    execute: async (input, call) => seen(await run(parts, input, call)),
    answer: async (text, approve, value) => seen(await answer(parts, text, approve, value)),
    pendingOf: (text) => suspended.get(text),
    toModelOutput: ({ output }) => modelOutput(output, parts.modelCharsMax),
  };
}

async function run(
  { execute, resume, outerCalls }: ScriptToolParts,
  input: CodemodeInput,
  call: AiCallOptions,
): Promise<CodemodeOutput> {
  const ids: string[] = [];
  const belongs = (runId: string): void => {
    ids.push(runId);
    outerCalls.set(runId, call);
  };
  const own = call.abortSignal === undefined ? {} : { signal: call.abortSignal };
  try {
    // The schema has let only texts through that parse.
    const request = input.resume === undefined ? undefined : parseResume(input.resume);
    if (request !== undefined && resume !== undefined) {
      belongs(request.runId);
      return outputOf(await resume(request.runId, answersTo(request, true), own));
    }
    return outputOf(await execute(input.code ?? "", { ...own, onRun: belongs }));
  } finally {
    for (const id of ids) outerCalls.delete(id);
  }
}

async function answer(
  { resume }: ScriptToolParts,
  text: string,
  approve: boolean,
  value: unknown,
): Promise<CodemodeOutput> {
  const request = parseResume(text);
  if (resume === undefined || request === undefined)
    throw new TypeError("answer needs the resume of a suspended output");
  return outputOf(await resume(request.runId, answersTo(request, approve, value)));
}

function answersTo({ callIds }: ResumeRequest, approve: boolean, value?: unknown): Approval[] {
  return callIds.map((callId) => ({ callId, approve, ...(value === undefined ? {} : { value }) }));
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
    ...(pending.length === 0 ? {} : { resume: resumeText(runId, pending) }),
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
    if (parseResume(resume) === undefined)
      return refuse("resume must be the text that a result gave for it, unchanged");
    return code === undefined || code === ""
      ? { value: { resume } }
      : refuse("give code or resume, not both");
  }
  return typeof code === "string" ? { value: { code } } : refuse(`the input must be ${wanted}`);
}
