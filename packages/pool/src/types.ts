/**
 * What the pool takes and gives: the request for one activation, its result, and the pool's health. Types only.
 *
 * A result is the same object whatever happened; `status` and `error.code` come from protocol's outcome table. It says
 * for every call whether it ran, and for the script whether it started. Nothing in a result was checked beyond its form:
 * `value`, `logs` and the texts of a script's error are a script's own.
 */
import type {
  ActivationError,
  CallOutcome,
  CallRecord,
  ConsoleLine,
  EncodedValue,
  Limits,
  Status,
  Usage,
  WarningData,
} from "@flowcell/protocol";

/** Parts of the result object, which protocol declares. */
export type { ActivationError, CallRecord, CallState, ConsoleLine, Usage } from "@flowcell/protocol";

/** One host call as its handler sees it. */
export interface HostCall {
  /** Counts the script's calls from 0; ascends, with gaps where a call was cancelled before it was sent. */
  readonly position: number;
  /** One of the request's `names`. */
  readonly name: string;
  /** An array of the positional arguments, still encoded. TRUST: a script chose it; decode it with bounds. */
  readonly args: EncodedValue;
  /** Aborted when the script cancels the call, and when the activation ends before the call does. Made when it is asked for. */
  readonly signal: AbortSignal;
  /** What `signal` says, without making one: it costs more than the rest of a call. */
  readonly aborted: boolean;
  /** Calls `listener` when `signal` is aborted, in place of the one before; null: nobody any more. */
  whenAborted(listener: (() => void) | null): void;
  /** The same for the same position of the same request, unguessable otherwise. */
  readonly idempotencyKey: string;
}

/** A host call as a driver sees it. */
export interface DrivenCall {
  readonly position: number;
  /** One of the request's `names`. */
  readonly name: string;
  /** An array of the positional arguments, still encoded. TRUST: a script chose it; decode it with bounds. */
  readonly args: EncodedValue;
}

/** What a driver may do with a running activation. Every method does nothing once the activation has ended. */
export interface DrivenActivation {
  /** Answers an open call and sets the guest's clock (epoch milliseconds, never back). Throws for a call that is not open. */
  deliver(position: number, outcome: CallOutcome, guestClockMs: number): void;
  /** Lets the guest's earliest timer fire, if it is due by this clock. */
  fireTimer(guestClockMs: number): void;
  /** What is recorded has been replayed: from here on the CPU budget is `limits.cpuMs` alone. */
  frontier(): void;
  /** Kills the worker; the activation ends with this verdict. */
  end(verdict: Pick<Verdict, "status" | "reason" | "message">): void;
}

/**
 * Decides what happens in an activation, in place of `onHostCall` and the pool's own clock: who writes down what is delivered
 * before it is delivered needs to say when. What a driver throws ends the activation as `internal`.
 */
export interface ActivationDriver {
  /** The script was given to a worker. */
  begun(activation: DrivenActivation): void;
  called(call: DrivenCall): void;
  /** The script cancelled an open call; it stays open until it is answered. */
  callCancelled(position: number): void;
  /** Nothing can run until something is delivered; everything that was delivered has been taken. */
  blocked(state: { readonly nextTimerAt: number | null; readonly openCalls: number }): void;
}

export interface ActivationRequest {
  /** Whose script it is. A worker serves one flow in its whole life. At most 256 characters. */
  readonly flow: string;
  /** An expression that evaluates to a function without running guest code; see packages/prelude. */
  readonly script: string;
  readonly input: EncodedValue;
  /** The host functions that the script may call. Pass the same array again: its encoding is kept. */
  readonly names: readonly string[];
  /** Whole limits, as `parseLimits` makes them. Pass the same object again: its encoding is kept. */
  readonly limits: Limits;
  readonly clock: {
    /** Where the guest's clock starts. */
    readonly epochMs: number;
    /**
     * `real`: timers wait and the clock follows the wall. `virtual`: timers are due at once when no call is open. `driven`:
     * the driver moves it; needs one.
     */
    readonly mode: "real" | "virtual" | "driven";
  };
  /** 32 bytes that seed the guest's random numbers. */
  readonly seed: Uint8Array;
  /** Whether `eval` and `Function` work inside the guest; default true. */
  readonly codeGeneration?: boolean;
  /**
   * `reset` (default): an idle worker of the same flow may serve, from its pristine image. `process`: a process that
   * has run nothing before and runs nothing after.
   */
  readonly isolation?: "reset" | "process";
  readonly signal?: AbortSignal;
  /** How long to wait for a worker, from now; default is the pool's `queueDeadlineMs`. */
  readonly queueDeadlineMs?: number;
  /** What idempotency keys begin with; default is random. Give it to have the same keys in a second try. */
  readonly callKeyPrefix?: string;
  /**
   * Answers a host call. What it throws or rejects with reaches the script as `internal` without its text, unless it is a
   * HostError. It is called once per position; what it answers after the activation ended is dropped. Either this or `driver`.
   */
  onHostCall?(call: HostCall): Promise<CallOutcome> | CallOutcome;
  readonly driver?: ActivationDriver;
  /** CPU time for a replay, beside `limits.cpuMs`, until the driver says `frontier`. */
  readonly replayCpuMs?: number;
  /** Each line as it comes. What it throws ends the activation as `internal`. */
  onConsole?(line: ConsoleLine): void;
}

export interface ActivationResult<Confinement> {
  readonly status: Status;
  /** The same as `error.code`. */
  readonly reason?: string;
  /** Only when `completed`. TRUST: a script chose it; decode it with bounds. */
  readonly value?: EncodedValue;
  readonly error?: ActivationError;
  readonly logs: readonly ConsoleLine[];
  readonly logsTruncated: boolean;
  readonly warnings: readonly WarningData[];
  readonly usage: Usage;
  /** How much of `usage.cpuMs` came before the driver said `frontier`; 0 without one. */
  readonly replayCpuMs: number;
  readonly calls: readonly CallRecord[];
  /** Whether the script was given to a worker. False means that nothing of it ran. */
  readonly started: boolean;
  /** What was live for this very worker; null when there was none. */
  readonly confinement: Confinement | null;
  readonly worker: { readonly pid: number; readonly activations: number } | null;
  /** What was learnt after the verdict, for operators. */
  readonly evidence: readonly string[];
}

/** Why the pool ended an activation or could not begin one. */
export interface Verdict {
  readonly status: Status;
  readonly reason: string;
  readonly message: string;
  readonly limit?: number;
  readonly used?: number;
  readonly fact?: string;
}
