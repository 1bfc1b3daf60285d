/**
 * What a flow would call: its script in a real cell, with nothing behind the host functions. Every call is recorded and
 * answered with nothing of its kind, so that nothing outside is read, written, sent, started or asked. A reviewer sees the
 * calls beside the source; how the script ends is information, not a verdict: on empty answers many scripts fail.
 *
 * The answers: an empty response with status 200 for `fetch`, an empty list for lists, false for deletions, true for
 * comparisons, an approval that says no, a run id that names no run, a finished child without a value, undefined for everything else. Timers fire at
 * once.
 *
 * TRUST: arguments and logs are a script's; they are decoded within small bounds and cut.
 * Kept true: at most `callsMost` calls, a few seconds, small budgets.
 */

import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import {
  type CallOutcome,
  decodeValue,
  type EncodedValue,
  encodeValue,
  type Limits,
  ValueError,
} from "@flowcell/protocol";
import type { CellActivation, CellDriver, CellPool, DryRun } from "../ports.js";

export const callsMost = 100;
const wallMs = 5_000;
const queueDeadlineMs = 30_000;
const cpuMs = 2_000;
const argsCharsMax = 500;
const logLinesMost = 50;
const logCharsMax = 500;

export interface DryRunRequest {
  readonly flow: string;
  readonly script: string;
  readonly input: EncodedValue;
  readonly names: readonly string[];
  /** Of the flow; the dry run has less. */
  readonly limits: Limits;
  readonly now: number;
}

export async function dryRun(pool: CellPool, request: DryRunRequest): Promise<DryRun> {
  const driver = new DryDriver(request.now);
  const logs: string[] = [];
  const result = await pool.activate({
    // Not the flow's own workers: nothing of a dry run is left where a run could find it.
    flow: `${request.flow} dry run`,
    script: request.script,
    input: request.input,
    names: request.names,
    limits: {
      ...request.limits,
      cpuMs: Math.min(request.limits.cpuMs, cpuMs),
      wallMs: Math.min(request.limits.wallMs, wallMs),
      // One more than is answered: the driver ends the run with a message of its own.
      hostCalls: Math.min(request.limits.hostCalls, callsMost + 1),
    },
    clock: { epochMs: request.now, mode: "driven" },
    seed: randomBytes(32),
    driver,
    replayCpuMs: 0,
    queueDeadlineMs,
    onConsole: ({ level, text }) => {
      if (logs.length < logLinesMost) logs.push(cut(`${level}: ${text}`, logCharsMax));
    },
  });
  return {
    status: result.status,
    message: result.error === undefined ? null : cut(result.error.message, logCharsMax),
    calls: driver.calls,
    logs,
  };
}

class DryDriver implements CellDriver {
  readonly calls: { name: string; args: string }[] = [];
  #activation: CellActivation | undefined;
  #clock: number;

  constructor(now: number) {
    this.#clock = now;
  }

  begun(activation: CellActivation): void {
    this.#activation = activation;
    activation.frontier();
  }

  called({ position, name, args }: Parameters<CellDriver["called"]>[0]): void {
    if (this.calls.length >= callsMost) {
      const message = `the dry run stops after ${callsMost} calls`;
      this.#activation?.end({ status: "budget_exceeded", reason: "host_calls", message });
      return;
    }
    const values = decoded(args);
    this.calls.push({ name, args: values === undefined ? "(too large to show)" : shown(values) });
    this.#activation?.deliver(position, neutralAnswer(name, values ?? []), this.#clock);
  }

  /** It has been answered already. */
  callCancelled(): void {}

  blocked({ nextTimerAt, openCalls }: Parameters<CellDriver["blocked"]>[0]): void {
    if (nextTimerAt !== null) {
      this.#clock = Math.max(this.#clock, nextTimerAt);
      this.#activation?.fireTimer(this.#clock);
    } else if (openCalls === 0) {
      const message = "the script waits for something that can never happen";
      this.#activation?.end({ status: "script_error", reason: "deadlock", message });
    }
  }
}

/** What a call is answered with, by its name; a function of the embedder returns undefined. */
export function neutralAnswer(name: string, args: readonly unknown[]): CallOutcome {
  const value = encodeValue(neutralValue(name, args), { textBytes: 64 * 1024, attachmentBytes: 0 });
  return { ok: true, value };
}

function neutralValue(name: string, args: readonly unknown[]): unknown {
  switch (name) {
    case "fetch":
      return {
        status: 200,
        statusText: "OK",
        headers: [],
        url: urlOf(args[0]),
        redirected: false,
        body: null,
      };
    case "kv.list":
    case "fs.list":
      return [];
    case "kv.delete":
    case "fs.delete":
      return false;
    case "kv.compareAndSet":
      return true;
    case "fs.read":
      return "";
    case "fs.stat":
      return null;
    case "fs.write":
    case "fs.append":
      return { bytes: 0 };
    case "approval.request":
      return { approved: false, value: undefined, by: "dry run" };
    case "flow.start":
      return { runId: "run_dry" };
    case "flow.wait":
      return { status: "completed", ok: true, value: undefined, error: null };
    case "event.emit":
      return { eventId: "evt_dry" };
    default:
      return undefined;
  }
}

function urlOf(request: unknown): string {
  const url: unknown =
    typeof request === "object" && request !== null && "url" in request ? request.url : undefined;
  return typeof url === "string" ? url.slice(0, 2_048) : "";
}

function decoded(args: EncodedValue): readonly unknown[] | undefined {
  try {
    const value = decodeValue(args, {
      textBytes: 64 * 1024,
      attachmentBytes: 64 * 1024,
      depth: 100,
      nodes: 10_000,
      regExps: "refuse",
    });
    return Array.isArray(value) ? value : undefined;
  } catch (error) {
    if (error instanceof ValueError) return undefined;
    throw error;
  }
}

function shown(values: readonly unknown[]): string {
  const options = {
    depth: 4,
    maxArrayLength: 20,
    maxStringLength: 200,
    breakLength: Number.POSITIVE_INFINITY,
  };
  return cut(values.map((value) => inspect(value, options)).join(", "), argsCharsMax);
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
