/**
 * `flowcell run PATH` for a file: runs one script in a confined worker and answers with its outcome. Whoever types it is
 * the operator: limits may be asked for up to what the machinery holds. A folder is left to the commands for flows, which
 * a file does not load.
 */

import { existsSync, statSync } from "node:fs";
import { outcomeTable } from "@flowcell/protocol";
import { PooledRuntime } from "../runtime.js";
import { askedLimits, cancelOnSignals, report } from "./execution.js";
import { logText } from "./human.js";
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
  const limits = askedLimits(typed.list("limit"), "flow");
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
    if (!result.started && /^[a-z0-9_-]{1,63}$/.test(path) && !existsSync(path)) {
      streams.err(`flowcell: if ${path} is an installed flow: flowcell start ${path}\n`);
    }
    return outcomeTable[result.status].exitCode;
  } finally {
    release();
    await runtime.close();
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Whatever it is, the run of a file says it better.
    return false;
  }
}
