/**
 * What `flowcell run` of a file and `flowcell exec` have in common: limits that were typed, signals, and how a result is told.
 * Whoever types is the operator: limits may be asked for up to what the machinery holds.
 */

import {
  type LimitName,
  type Limits,
  limitCeilings,
  type ProfileName,
  parseLimitOption,
  parseLimits,
  profileLimits,
} from "@flowcell/protocol";
import type { RunResult } from "../result.js";
import { taggedJson } from "../tagged-json.js";
import { failureText, objectText, summaryText, valueText } from "./human.js";
import type { Streams } from "./typed.js";
import { UsageError } from "./usage.js";

export function askedLimits(asked: readonly string[], profile: ProfileName): Limits {
  const named: Partial<Record<LimitName, number>> = {};
  for (const text of asked) {
    const parsed = parseLimitOption(text);
    if (!parsed.ok) throw new UsageError("limits", parsed.message);
    if (named[parsed.name] !== undefined)
      throw new UsageError("limits", `--limit ${parsed.name} is given twice; give it once`);
    named[parsed.name] = parsed.value;
  }
  const parsed = parseLimits(named, profileLimits(profile), limitCeilings);
  if (!parsed.ok) throw new UsageError("limits", parsed.message);
  return parsed.limits;
}

export function report(result: RunResult, json: boolean, streams: Streams): void {
  if (json) {
    streams.out(objectText(result.ok ? { ...result, value: taggedJson(result.value) } : result));
    return;
  }
  if (result.ok) streams.out(valueText(result.value, streams.outIsTerminal));
  else streams.err(failureText(result));
  streams.err(summaryText(result));
}

/** The first signal cancels the run and lets it end in order, the second ends this process; workers die with it. */
export function cancelOnSignals(stop: AbortController, streams: Streams): () => void {
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
