/**
 * `flowcell run PATH`: runs one script file in a confined worker and answers with its outcome. Whoever types it is the
 * operator: limits may be asked for up to what the machinery holds.
 */

import {
  type LimitName,
  type Limits,
  limitCeilings,
  outcomeTable,
  parseLimitOption,
  parseLimits,
  profileLimits,
} from "@flowcell/protocol";
import { notStarted, type RunResult } from "../result.js";
import { PooledRuntime } from "../runtime.js";
import { taggedJson } from "../tagged-json.js";
import { failureText, logText, summaryText, valueText } from "./human.js";
import { readInput } from "./input.js";
import { Trace } from "./trace.js";
import { UsageError } from "./usage.js";

export interface RunCommandOptions {
  readonly input?: string;
  readonly json?: boolean;
  readonly trace?: boolean;
  readonly limit?: readonly string[];
}

/** Where a command writes; a process's streams, or a test's. */
export interface Streams {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly outIsTerminal: boolean;
}

export async function runCommand(
  path: string,
  options: RunCommandOptions,
  streams: Streams,
): Promise<number> {
  const limits = askedLimits(options.limit ?? []);
  const input = readInput(options.input, limits.inputBytes);
  const trace = options.trace === true ? new Trace(streams.err) : undefined;
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
    report(result, options, streams);
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

function report(result: RunResult, options: RunCommandOptions, streams: Streams): void {
  if (options.json === true) {
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

/** The object that `--json` prints for a mistake that was found before there was a run. */
export function usageJson(error: UsageError): string {
  return jsonText(notStarted("", "invalid_input", { code: error.code, message: error.message }));
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
