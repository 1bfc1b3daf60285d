/**
 * `flowcell run PATH` for a file: runs one script in a confined worker and answers with its outcome. Whoever types it is
 * the operator: limits may be asked for up to what the machinery holds. A folder is left to the commands for flows, which
 * a file does not load.
 */

import { statSync } from "node:fs";
import {
  type LimitName,
  type Limits,
  limitCeilings,
  outcomeTable,
  parseLimitOption,
  parseLimits,
  profileLimits,
} from "@flowcell/protocol";
import type { RunResult } from "../result.js";
import { PooledRuntime } from "../runtime.js";
import { taggedJson } from "../tagged-json.js";
import { failureText, logText, summaryText, valueText } from "./human.js";
import { readInput } from "./input.js";
import { Trace } from "./trace.js";
import type { Streams, Typed } from "./typed.js";
import { UsageError } from "./usage.js";

/** Options that a script without a manifest has no use for. */
const folderOptions: ReadonlyMap<string, string> = new Map([
  ["mount", "--mount"],
  ["allowNet", "--allow-net"],
  ["allowRead", "--allow-read"],
  ["secret", "--secret"],
  ["caFile", "--ca-file"],
  ["approve", "--approve"],
]);

export async function runCommand(typed: Typed, streams: Streams): Promise<number | "folder"> {
  const path = typed.argument(0);
  if (isFolder(path)) return "folder";
  const foreign = typed.given([...folderOptions.keys()]);
  if (foreign !== undefined) {
    const flag = folderOptions.get(foreign) ?? foreign;
    throw new UsageError(
      "request",
      `${flag} is for flows, and ${path} is no folder with a flow.json: a script file is given no files, hosts or secrets`,
    );
  }
  const limits = askedLimits(typed.list("limit"));
  const input = readInput(typed.text("input"), limits.inputBytes);
  const trace = typed.flag("trace") ? new Trace(streams.err) : undefined;
  const { heapBytes, cpuMs } = limits;
  // Nothing else uses these workers, so they are confined to what this run asks for.
  const runtime = new PooledRuntime({ limits, ceilings: { heapBytes, cpuMs }, workersMax: 1 }, trace ?? {});
  const stop = new AbortController();
  const release = cancelOnSignals(stop, streams);
  try {
    const result = await runtime.run({
      path,
      input,
      signal: stop.signal,
      onLog: (line) => streams.err(logText(line)),
    });
    trace?.finish(result);
    report(result, typed.flag("json"), streams);
    return outcomeTable[result.status].exitCode;
  } finally {
    release();
    await runtime.close();
  }
}

function askedLimits(asked: readonly string[]): Limits {
  const named: Partial<Record<LimitName, number>> = {};
  for (const text of asked) {
    const parsed = parseLimitOption(text);
    if (!parsed.ok) throw new UsageError("limits", parsed.message);
    named[parsed.name] = parsed.value;
  }
  const parsed = parseLimits(named, profileLimits("flow"), limitCeilings);
  if (!parsed.ok) throw new UsageError("limits", parsed.message);
  return parsed.limits;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Whatever it is, the run of a file says it better.
    return false;
  }
}

function report(result: RunResult, json: boolean, streams: Streams): void {
  if (json) {
    streams.out(`${jsonText(result)}\n`);
    return;
  }
  if (result.ok) streams.out(valueText(result.value, streams.outIsTerminal));
  else streams.err(failureText(result));
  streams.err(summaryText(result));
}

function jsonText(result: RunResult): string {
  return JSON.stringify(result.ok ? { ...result, value: taggedJson(result.value) } : result, null, 2);
}

/** The first signal cancels the run and lets it end in order, the second ends this process; workers die with it. */
function cancelOnSignals(stop: AbortController, streams: Streams): () => void {
  const cancel = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) {
      release();
      process.kill(process.pid, signal);
      return;
    }
    streams.err("flowcell: cancelling; once more to end at once\n");
    stop.abort();
  };
  const release = (): void => {
    process.off("SIGINT", cancel);
    process.off("SIGTERM", cancel);
  };
  process.on("SIGINT", cancel);
  process.on("SIGTERM", cancel);
  return release;
}
