/**
 * `codemodeTool`: one tool of the AI SDK in place of many. The model writes a script that calls them. The SDK need not be
 * installed for this file to load.
 *
 *     const codemode = await codemodeTool({ tools: { weather, sendMail } });
 *     await generateText({ model, tools: { codemode }, stopWhen: stepCountIs(8), prompt });
 *
 * Approvals. A tool with `needsApproval` suspends the script at the call. The result says so and names the calls; the model calls
 * this tool again with the text of `resume`; that call needs the SDK's own approval, and approving it approves exactly the
 * calls that the text names. So a person is asked in the way that the program asks for any tool, with `pendingOf(resume)` to
 * show, and the script goes on where it stopped. After a refusal it stays where it is, until the program ends it
 * with `codemode.answer(resume, false, reason)`; a program that asks in a way of its own approves by the same function.
 *
 * Kept true: `execute` never throws for what a script did; its output is JSON, since the SDK stores it.
 */

import { type Codemode, createCodemode } from "../codemode.js";
import type { CodemodeOptions } from "../options.js";
import { codemodePrompt, type PromptOptions } from "../prompt.js";
import { CodemodeOptionsError, mayAsk } from "../tool-set.js";
import { type ScriptTool, scriptTool } from "./ai-tool.js";
import { adoptTools } from "./ai-tools.js";
import type { AiCallOptions, AiTool } from "./ai-types.js";

export type { CodemodeInput, CodemodeOutput, PendingView } from "./ai-tool.js";
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

/** A tool of the SDK, and what it runs on. */
export interface CodemodeTool extends ScriptTool {
  /** What runs the scripts. */
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
  try {
    const tool = toolOver(codemode, prompt, modelCharsMax, outerCalls);
    return {
      ...tool,
      codemode,
      close: () => codemode.close(),
      [Symbol.asyncDispose]: () => codemode.close(),
    };
  } catch (error) {
    await codemode.close();
    throw error;
  }
}

function toolOver(
  codemode: Codemode,
  prompt: PromptOptions,
  modelCharsMax: number,
  outerCalls: Map<string, AiCallOptions>,
): ScriptTool {
  const asks = codemode.tools.tools.some(mayAsk);
  return scriptTool({
    description: codemodePrompt(codemode.tools, { template: usualTemplate(asks), ...prompt }),
    modelCharsMax,
    execute: (code, execution) => codemode.execute(code, execution),
    resume: asks ? (runId, answers, options) => codemode.resume(runId, answers, options) : undefined,
    outerCalls,
  });
}

function usualTemplate(asks: boolean): string {
  const head = "Runs one script that calls tools, so that many calls, loops and filters take one turn.";
  const approval =
    "\n- Some calls need a person's approval: the script then stops there, and the result says how to go on.";
  return `${head}\n{{rules}}${asks ? approval : ""}\n\n{{types}}`;
}
