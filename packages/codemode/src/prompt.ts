/**
 * What a model is told before it writes a script: how to write one, and the types of the tools. Called by createCodemode and
 * the adapters; programs may bring a template of their own with `{{types}}` where the types go.
 *
 * Kept true: every statement of the text is carried out in a cell by test/codemode/types-prompt.test.ts; descriptions and
 * names of tools cannot end the fence that they stand in; the text is never over its budget of tokens.
 */

import { didYouMean, type Limits } from "@flowcell/protocol";
import { hasLookup, lookupText } from "./lookup-functions.js";
import type { ToolSet } from "./tools.js";
import { compactTypes, tokensOf } from "./types/compact.js";

export interface PromptOptions {
  /** Of the whole text, a token being counted as four characters. Default 10,000. */
  readonly tokensMax?: number;
  /** Instead of the text of this file. `{{types}}` becomes the declarations, fenced; `{{rules}}` the text's rules. */
  readonly template?: string;
  /** A sentence that tells the model how to see the tools that had no room. Default: by `codemode.search` in a script. */
  readonly more?: string;
  /** Told as numbers: time, calls and sizes that a script must stay under. */
  readonly limits?: Partial<Limits>;
}

const optionNames = ["tokensMax", "template", "more", "limits"];
const foreignNames: ReadonlyMap<string, string> = new Map([
  ["maxTokens", "tokensMax"],
  ["tokens", "tokensMax"],
  ["budget", "tokensMax"],
  ["description", "template"],
  ["prompt", "template"],
]);
const tokensDefault = 10_000;
/** Tokens left for the types in the smallest budget. */
const typesTokensLeast = 64;

/** One entry for each statement, so that each can have its test. */
export const promptRules: readonly string[] = [
  "Write one JavaScript or TypeScript script that does the whole task. It is the body of an async function: `await` and `return` work at its top level.",
  "A tool is an async function with one object as its input: `const file = await files.read({ path })`. Tools without a namespace are in `tools`: `await tools.name({ … })`. Functions declared with `(...args)` take positional arguments.",
  "Call only what is declared below; another name fails with the names that exist.",
  "Start calls that do not need each other together: `await Promise.all(ids.map((id) => tools.get({ id })))`.",
  "Await every call. One that is still open when the script ends is lost.",
  "Return what the task asks for, and no more: plain objects, arrays, strings and numbers, also Date, Map, Set and Uint8Array. Functions and class instances cannot be returned. Without a `return`, the value of a trailing expression is the result.",
  "`console.log` lines come back beside the result.",
  "Inputs are checked before a tool runs. A call that fails rejects with an Error whose message says why: catch it only where the script can go on. An uncaught error ends the script and is reported with its line.",
  "There are no files, no network, no processes and no modules: no `import`, `require`, `process`, `Buffer` or `fetch`. There are the language up to ES2023, `URL`, `TextEncoder`, `TextDecoder`, `atob`, `btoa`, `crypto.randomUUID`, `structuredClone`, `AbortController` and `setTimeout`.",
  "`toLocaleString` and `localeCompare` know en-US and UTC only; there is no `Intl`.",
  "`Date.now()` is the real time of the last answer and moves only while the script waits for a call or a timer, so never wait in a loop.",
  "Time, memory, calls, output and result are limited; an error names the limit that was reached.",
];

const defaultTemplate = `{{rules}}

{{types}}`;

export function codemodePrompt(set: ToolSet, options: PromptOptions = {}): string {
  checkOptions(options);
  const tokensMax = options.tokensMax ?? tokensDefault;
  const template = options.template ?? defaultTemplate;
  const rules = [...promptRules, ...limitsRule(options.limits)].map((rule) => `- ${rule}`).join("\n");
  const withRules = template.replaceAll("{{rules}}", () => rules);
  const places = withRules.split("{{types}}").length - 1;
  if (places !== 1) throw new TypeError(`template must hold {{types}} once, not ${places} times`);
  // The longest fence that may be needed is a few characters; 16 tokens are more than that.
  const left = tokensMax - tokensOf(withRules) - 16;
  if (left < typesTokensLeast)
    throw new RangeError(`tokensMax must be at least ${tokensMax + typesTokensLeast - left} for this text`);
  const told = options.more ?? (hasLookup(set) ? lookupText : undefined);
  const more = told === undefined ? {} : { more: told };
  const types = compactTypes(set, { tokensMax: left, ...more }).text;
  return withRules.replace("{{types}}", () => fenced(types));
}

/** A fence longer than any run of backquotes inside it. */
function fenced(types: string): string {
  const longest = Math.max(2, ...(types.match(/`{3,}/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}ts\n${types}${fence}`;
}

function limitsRule(limits: Partial<Limits> | undefined): string[] {
  if (limits === undefined) return [];
  const { wallMs, hostCalls, resultBytes, outputBytes } = limits;
  const told = [
    wallMs === undefined ? "" : `${count(wallMs / 1000)} seconds`,
    hostCalls === undefined ? "" : `${count(hostCalls)} calls`,
    resultBytes === undefined ? "" : `${size(resultBytes)} of result`,
    outputBytes === undefined ? "" : `${size(outputBytes)} of log`,
  ].filter((each) => each !== "");
  return told.length === 0 ? [] : [`The limits: ${told.join(", ")}.`];
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}

function size(bytes: number): string {
  return bytes >= 1024 * 1024 ? `${count(bytes / 1024 / 1024)} MiB` : `${count(bytes / 1024)} KiB`;
}

function checkOptions(options: PromptOptions): void {
  for (const key of Object.keys(options)) {
    if (optionNames.includes(key)) continue;
    const near = foreignNames.get(key) ?? didYouMean(key, optionNames);
    const hint = near === undefined ? `the options are ${optionNames.join(", ")}` : `did you mean ${near}?`;
    throw new TypeError(`unknown option ${JSON.stringify(key.slice(0, 80))} of the prompt: ${hint}`);
  }
  const { tokensMax } = options;
  if (tokensMax !== undefined && !(Number.isSafeInteger(tokensMax) && tokensMax > 0))
    throw new RangeError("tokensMax must be a whole number above 0");
}
