// What a guest case is: a script, the limits it runs under and every outcome that is right for it. The tables honest.ts,
// greedy.ts and hostile.ts hold the cases; guests.test.ts runs each on one shared pool and then runs a plain script on
// the same pool. Scripts are function bodies with `await` and `return`; `t` is the group of host functions in host.ts.

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
  /** Codes of the warnings that the result must carry; exactly these. */
  readonly warnings?: readonly string[];
}

export interface GuestCase {
  readonly name: string;
  /** Body of `async (input, host, t)`; or a whole module when `module` is set. */
  readonly body: string;
  readonly module?: boolean;
  readonly typescript?: boolean;
  readonly limits?: Readonly<Record<string, number>>;
  /** The first that fits is enough; none fitting fails the test. */
  readonly expect: readonly Expectation[];
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
