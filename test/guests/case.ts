// What a guest case is: a script, the limits it runs under and every outcome that is right for it. The tables honest.ts,
// greedy.ts and hostile.ts hold the cases; guests.test.ts runs each on one shared pool and then runs a plain script on
// the same pool. Scripts are function bodies with `await` and `return`; `t` is the group of host functions in host.ts.

import { inspect, isDeepStrictEqual } from "node:util";
import type { RunResult } from "../../packages/flowcell/src/result.js";

export interface Expectation {
  readonly status: string;
  /** The outcome's reason, as callers see it in `error.code`. */
  readonly reason?: string;
  /** The result's value, compared deeply. */
  readonly value?: unknown;
  readonly errorName?: string;
  readonly errorMessage?: string | RegExp;
  /** `line` or `line:column` in the author's file where the error's first frame must point. */
  readonly errorAt?: RegExp;
  /** Names of the errors inside: the cause's first, then those of the members of an aggregate. */
  readonly errorInside?: readonly string[];
  /** Codes of the warnings that the result must carry; exactly these. */
  readonly warnings?: readonly string[];
}

export interface GuestCase {
  readonly name: string;
  /** Body of `async (input, host, t)`; or a whole module when `module` is set. */
  readonly body: string;
  readonly module?: boolean;
  readonly typescript?: boolean;
  readonly input?: unknown;
  readonly limits?: Readonly<Record<string, number>>;
  /** The first that fits is enough; none fitting fails the test. */
  readonly expect: readonly Expectation[];
  /** `level: text` of every line that the run must have logged, in order. */
  readonly logs?: readonly string[];
  /** Milliseconds to wait after the run before the pool is checked, for effects that arrive late. */
  readonly settleMs?: number;
}

export const completed = (value: unknown, warnings?: readonly string[]): Expectation =>
  warnings === undefined ? { status: "completed", value } : { status: "completed", value, warnings };

export const scriptError = (errorName: string, errorMessage?: string | RegExp): Expectation =>
  errorMessage === undefined
    ? { status: "script_error", errorName }
    : { status: "script_error", errorName, errorMessage };

export const exceeded = (reason: string): Expectation => ({ status: "budget_exceeded", reason });

/** The script used up its time: the CPU budget or, where it only waits, the wall budget. */
export const timeout: readonly Expectation[] = [exceeded("cpu"), exceeded("wall")];
export const memory: readonly Expectation[] = [exceeded("memory")];

/** Small limits under which a guest that never stops is stopped soon. */
export const small = { heapBytes: 32 * 1024 * 1024, cpuMs: 300, wallMs: 20_000 };

/** The author's file of a case: its first line is the wrapper's, so that line n of a body is line n + 1. */
export function sourceOf(guest: Pick<GuestCase, "body" | "module">): string {
  if (guest.module === true) return guest.body;
  return `export default async (input, host) => { const t = host.t;\n${guest.body}\n};\n`;
}

/** What a case's file is called, which decides how it is read. */
export function labelOf(guest: Pick<GuestCase, "typescript">): string {
  return guest.typescript === true ? "guest.ts" : "guest.js";
}

/** How a result differs from an expectation: "" if it does not. */
export function difference(result: RunResult, wanted: Expectation): string {
  if (result.status !== wanted.status) return `status is ${result.status}, not ${wanted.status}`;
  if ("value" in wanted) {
    if (!result.ok) return "there is no value";
    if (!isDeepStrictEqual(result.value, wanted.value)) return "the value differs";
  }
  if (wanted.warnings !== undefined) {
    const codes = result.warnings.map(({ code }) => code);
    if (!isDeepStrictEqual(codes, wanted.warnings))
      return `warnings are ${codes.join()}, not ${wanted.warnings.join()}`;
  }
  return result.ok ? "" : errorDifference(result.error, wanted);
}

type ResultError = Extract<RunResult, { ok: false }>["error"];

function errorDifference(error: ResultError, wanted: Expectation): string {
  const { reason, errorName, errorMessage, errorAt, errorInside } = wanted;
  if (reason !== undefined && error.code !== reason) return `code is ${error.code}, not ${reason}`;
  if (errorName !== undefined && error.name !== errorName) return `name is ${error.name}, not ${errorName}`;
  const fits = typeof errorMessage === "string" ? error.message === errorMessage : undefined;
  if (fits === false || (errorMessage instanceof RegExp && !errorMessage.test(error.message))) {
    return `message is ${error.message.slice(0, 200)}`;
  }
  if (errorAt !== undefined) {
    const frame = error.stack?.split("\n").find((line) => /^ {4}at /.test(line)) ?? "";
    if (!errorAt.test(frame)) return `the first frame is ${frame}`;
    if (error.place === undefined) return "the error has no place";
  }
  if (errorInside !== undefined) {
    const inside = [error.cause, ...(error.errors ?? [])].flatMap((one) =>
      one === undefined ? [] : [one.name],
    );
    if (!isDeepStrictEqual(inside, errorInside)) return `the errors inside are ${inside.join()}`;
  }
  return "";
}

/** Says why a result fits none of the expectations; "" if it fits one. */
export function misfit(result: RunResult, wanted: readonly Expectation[]): string {
  const differences = wanted.map((one) => difference(result, one));
  if (differences.length === 0) return "nothing is expected of this case";
  return differences.includes("") ? "" : differences.join("; ");
}

/** A result in a few lines, for the message of a failed test. */
export function show(result: RunResult): string {
  const { status, logs, warnings, usage } = result;
  const outcome = result.ok ? { value: result.value } : { error: result.error };
  return inspect(
    { status, ...outcome, logs: logs.slice(0, 20), warnings, usage },
    { depth: 6, maxStringLength: 500, maxArrayLength: 50, breakLength: 140 },
  );
}
