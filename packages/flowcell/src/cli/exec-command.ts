/**
 * `flowcell exec [FILE|-]`: runs a script as a model writes them, against the tools of a module, in a confined worker. The
 * module is the operator's own code and is loaded into this process; the script is nobody's.
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
  type ExecuteResult,
  type ToolsGiven,
} from "@flowcell/codemode";
import { exitCodes, type Limits, limitCeilings, outcomeTable } from "@flowcell/protocol";
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
    const first = await codemode.execute(code, {
      label: path === "-" ? "script.js" : labelOf(path),
      signal: stop.signal,
      onLog: (line) => streams.err(logText(line)),
    });
    const result = await asked(codemode, first, streams);
    report(result, typed.flag("json"), streams);
    return outcomeTable[result.status].exitCode;
  } finally {
    release();
    await codemode.close();
  }
}

/** Goes on for as long as somebody at the terminal answers what the script asks for. */
async function asked(codemode: Codemode, first: ExecuteResult, streams: Streams): Promise<ExecuteResult> {
  let result = first;
  while (result.status === "suspended" && streams.ask !== undefined) {
    const answers: ApprovalAnswer[] = [];
    for (const { callId, name, args } of result.pending) {
      // TRUST: a script's arguments on a terminal.
      const shown = indented(args.map((one) => valueText(one, true).trim()).join(", "), "  ");
      const answer = await streams.ask(`${printable(name)}(${shown})\nMay it be called? [y/N] `);
      answers.push({ callId, approve: /^y(?:es)?$/i.test(answer.trim()) });
    }
    if (answers.length === 0) break;
    result = await codemode.resume(result.runId, answers);
  }
  return result;
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
