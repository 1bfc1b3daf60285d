/**
 * `flowcell exec [FILE|-]`: runs a script as a model writes them, against the tools of a module, in a confined worker. The
 * module is the operator's own code and is loaded into this process; the script is nobody's. main.ts keeps standard output
 * from that code, and ends the process whatever it left open.
 *
 * Loaded only when it is asked for; a bundle of its own, since it loads modules by `import`.
 */

import { basename, isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { printable } from "@flowcell/bundle";
import {
  type ApprovalAnswer,
  type Codemode,
  CodemodeOptionsError,
  createCodemode,
  type ExecuteFailed,
  type ExecuteResult,
  type ToolSet,
  type ToolsGiven,
} from "@flowcell/codemode";
import { didYouMean, exitCodes, type Limits, limitCeilings, outcomeTable } from "@flowcell/protocol";
import { askedLimits, cancelOnSignals, report } from "./execution.js";
import { indented, logText, remarkText, valueText } from "./human.js";
import { FileProblem, readBounded, readStandardInput } from "./read-file.js";
import type { Streams, Typed } from "./typed.js";
import { UsageError } from "./usage.js";
import { usageJson } from "./usage-json.js";

export async function execCommand(typed: Typed, streams: Streams): Promise<number> {
  try {
    return await execute(typed, streams);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    streams.err(remarkText(error.message));
    if (typed.flag("json")) streams.out(usageJson(error));
    return exitCodes.usage;
  }
}

async function execute(typed: Typed, streams: Streams): Promise<number> {
  const limits = askedLimits(typed.list("limit"), "codemode");
  const path = typed.optional(0) ?? "-";
  const toolsPath = typed.text("tools");
  const tools = toolsPath === undefined ? {} : await loadTools(toolsPath);
  const code = readScript(path);
  const codemode = await open(tools, limits, toolsPath);
  const stop = new AbortController();
  const release = cancelOnSignals(stop, streams);
  try {
    const approved = approvedNames(typed.list("approve"), codemode.tools);
    const first = await codemode.execute(code, {
      label: path === "-" ? "script.js" : labelOf(path),
      signal: stop.signal,
      onLog: (line) => streams.err(logText(line)),
    });
    const answered = await answer(codemode, first, { approved, signal: stop.signal, streams });
    const result = answered.status === "suspended" ? withAdvice(answered) : answered;
    report(result, typed.flag("json"), streams);
    return outcomeTable[result.status].exitCode;
  } finally {
    release();
    await codemode.close();
  }
}

interface Approvals {
  readonly approved: ReadonlySet<string>;
  readonly signal: AbortSignal;
  readonly streams: Streams;
}

/** Goes on for as long as what the script asks for was approved beforehand, or somebody at the terminal answers. */
async function answer(codemode: Codemode, first: ExecuteResult, by: Approvals): Promise<ExecuteResult> {
  const { approved, signal, streams } = by;
  let result = first;
  while (result.status === "suspended") {
    const answers: ApprovalAnswer[] = [];
    for (const { callId, name, args } of result.pending) {
      if (approved.has(name)) answers.push({ callId, approve: true });
      if (approved.has(name) || streams.ask === undefined) continue;
      // TRUST: a script's arguments on a terminal.
      const shown = indented(args.map((one) => valueText(one, true).trim()).join(", "), "  ");
      const said = await streams.ask(`${printable(name)}(${shown})\nMay it be called? [y/N] `);
      answers.push({ callId, approve: /^y(?:es)?$/i.test(said.trim()) });
    }
    if (answers.length === 0) break;
    result = await codemode.resume(result.runId, answers, { signal });
  }
  return result;
}

/** Of `--approve`. A name that approves nothing was meant for another tool. */
function approvedNames(given: readonly string[], { tools }: ToolSet): ReadonlySet<string> {
  const all = tools.map(({ namespace, name }) => `${namespace}.${name}`);
  const asking = all.filter((_, index) => tools[index]?.needsApproval !== false);
  for (const name of given) {
    if (asking.includes(name)) continue;
    const near = asking.find((one) => one.endsWith(`.${name}`)) ?? didYouMean(name, asking);
    const hint =
      all.includes(name) || near === undefined
        ? `those that do: ${asking.slice(0, 20).join(", ") || "none"}`
        : `did you mean ${near}?`;
    throw new UsageError(
      "request",
      `--approve ${JSON.stringify(name)}: no such tool needs approval; ${hint}`,
    );
  }
  return new Set(given);
}

/** The execution ends with this process, so nobody can resume it. */
function withAdvice(result: ExecuteFailed): ExecuteFailed {
  const names = [...new Set(result.pending.map(({ name }) => name))];
  const flags = names.map((name) => `--approve ${name}`).join(" ");
  const message = `it waits for the approval of ${names.join(", ")}; run it at a terminal to be asked, or approve beforehand with ${flags}`;
  return { ...result, error: { ...result.error, message } };
}

async function open(tools: ToolsGiven, limits: Limits, toolsPath: string | undefined): Promise<Codemode> {
  const { heapBytes, cpuMs } = limits;
  try {
    // Nothing else uses the worker, so it is confined to what this script asks for.
    return await createCodemode({ tools, limits, ceilings: { heapBytes, cpuMs }, maxWorkers: 1, spares: 1 });
  } catch (error) {
    if (!(error instanceof CodemodeOptionsError) || toolsPath === undefined) throw error;
    throw new UsageError("request", `--tools ${toolsPath}: ${error.message}`);
  }
}

/** Named exports are the tools; a default export that is an object holds more of them. */
async function loadTools(path: string): Promise<ToolsGiven> {
  // A CommonJS module's exports are its default too, and in newer versions of Node once more.
  const { default: more, "module.exports": _, ...named } = await load(path);
  if (typeof more === "function")
    throw new UsageError(
      "request",
      `--tools ${path}: exports a function without a name; export it by its name`,
    );
  const inside = typeof more === "object" && more !== null ? Object.entries(more) : [];
  // What they are is checked by codemode, one by one.
  const tools = Object.fromEntries([...inside, ...Object.entries(named)]) as ToolsGiven;
  if (Object.keys(tools).length > 0) return tools;
  throw new UsageError(
    "request",
    `--tools ${path}: exports nothing; write for example: export const add = (a, b) => a + b;`,
  );
}

async function load(path: string): Promise<Record<string, unknown>> {
  // Looked at first: a module that is not there and one that imports what is not there are different mistakes.
  lookAtTools(path);
  try {
    const module: Record<string, unknown> = await import(pathToFileURL(resolve(path)).href);
    return module;
  } catch (error) {
    const unknown = error instanceof Error && "code" in error && error.code === "ERR_UNKNOWN_FILE_EXTENSION";
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    const advice = unknown ? "; a module of tools is JavaScript: .mjs, .js or .cjs" : "";
    throw new UsageError("request", `--tools ${path}: cannot be loaded: ${firstLine(text)}${advice}`);
  }
}

/** Of a script before it is looked at: none that is longer can be sent to a worker. */
const scriptBytesMax = limitCeilings.sourceBytes;
/** Of a module of tools, which may be a bundle. */
const toolsBytesMax = 64 * 1024 * 1024;

function readScript(path: string): string {
  const name = path === "-" ? "standard input" : path;
  try {
    const bytes =
      path === "-"
        ? readStandardInput(scriptBytesMax)
        : readBounded(path, { bytesMax: scriptBytesMax, pipes: true });
    return decodeText(bytes, name);
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    const advice = error.kind === "too_large" ? `; a script has at most ${scriptBytesMax} bytes` : "";
    throw new UsageError("request", `${name}: ${error.message}${advice}`);
  }
}

function lookAtTools(path: string): void {
  try {
    readBounded(path, { bytesMax: toolsBytesMax, pipes: false });
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    throw new UsageError("request", `--tools ${path}: ${error.message}`);
  }
}

function decodeText(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError("request", `${what}: not UTF-8 text`);
  }
}

/** What messages call the script: as it was typed, if that says nothing of this machine. */
function labelOf(path: string): string {
  const label = isAbsolute(path) || path.startsWith("..") ? basename(path) : path;
  return label.replaceAll(/[\n\r:()]/g, "_").slice(-200);
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
