/**
 * The one object that every run returns, from the library, codemode, the command line (`--json`) and HTTP alike. Types only:
 * the pool fills in what it measured, packages/bundle puts a result together (`assembleResult`).
 *
 * TRUST: `value`, `logs`, and the texts in `error` and `warnings` are a script's own. They are bounded and well-formed,
 * nothing more; whoever shows them on a terminal or a page escapes them there.
 */

import type { ConsoleLevel, ScriptErrorData, WarningData } from "./headers.js";
import type { Status } from "./outcome.js";

/** A position in an author's file: line and column from 1, columns in UTF-16 units. */
export interface ScriptPlace {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface LogLine {
  readonly level: ConsoleLevel;
  /** The script's own clock, ISO 8601. */
  readonly time: string;
  readonly text: string;
}

/** One line that a script logged, as the pool has it. */
export interface ConsoleLine {
  readonly seq: number;
  readonly level: ConsoleLevel;
  /** The guest's clock, epoch milliseconds. */
  readonly timeMs: number;
  readonly text: string;
}

/**
 * `not_started`: it waits for an approval, or ended before it was begun. `unknown`: the handler was called and its outcome did
 * not come before the end: the effect may have happened.
 */
export type CallState = "not_started" | "done" | "failed" | "cancelled" | "unknown";

export interface CallRecord {
  readonly position: number;
  readonly name: string;
  readonly state: CallState;
  /** The host error's code when it failed or was cancelled. */
  readonly code?: string;
  readonly durationMs: number;
  /** Text and attachments of the arguments, and of the outcome's value. */
  readonly inputBytes: number;
  readonly outputBytes: number;
  readonly idempotencyKey: string;
}

/** A call that waits for an answer from outside. */
export interface PendingCall {
  /** By which the answer comes; unguessable. */
  readonly callId: string;
  readonly name: string;
  readonly args: readonly unknown[];
}

export interface ActivationError {
  /** A reason of the outcome table, or the code of the host error that the script did not catch. */
  readonly code: string;
  readonly message: string;
  /** The script's own error: only for `script_error` and what derives from it. */
  readonly name?: string;
  /** The script's error's own `code`, where it is another one. */
  readonly ownCode?: string;
  readonly stack?: string;
  readonly cause?: ScriptErrorData;
  readonly errors?: readonly ScriptErrorData[];
  /** For `budget_exceeded`: in the unit of the limit's name. */
  readonly limit?: number;
  readonly used?: number;
  /** For `sandbox_unavailable`: the fact, check or step that failed. */
  readonly fact?: string;
}

export interface Usage {
  /** The parent's measurement of the process, waits excluded. */
  readonly cpuMs: number;
  /** From Activate to the end; waiting for a worker is `queuedMs`. */
  readonly wallMs: number;
  /** The worker's report; 0 when it made none. */
  readonly heapPeakBytes: number;
  readonly hostCalls: number;
  /** Frame bytes to and from the worker. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly queuedMs: number;
}

/** An error as text; stacks name the author's files. */
export interface ErrorReport {
  readonly name: string;
  readonly message: string;
  /** `name: message`, then one line per frame of the script. */
  readonly stack: string;
  readonly code?: string;
  readonly cause?: ErrorReport;
  /** The members of an AggregateError. */
  readonly errors?: readonly ErrorReport[];
}

/** Why a run did not complete. */
export interface RunError {
  /** A reason of the status, or the code of the host error that the script did not catch. */
  readonly code: string;
  readonly message: string;
  /** The script's own, for script_error; else the status. */
  readonly name: string;
  /** The `code` that the error had which the script did not catch, where it is not `code`. */
  readonly ownCode?: string;
  readonly stack?: string;
  /** Where in the author's files, when that is known. */
  readonly place?: ScriptPlace;
  /** The source line at `place` with a caret under the column. */
  readonly frame?: string;
  readonly cause?: ErrorReport;
  readonly errors?: readonly ErrorReport[];
  /** For budget_exceeded: the limit and what was used, in the unit of the limit's name. */
  readonly limit?: number;
  readonly used?: number;
  /** For sandbox_unavailable: what failed, and what would help. */
  readonly fact?: string;
  readonly remedy?: string;
}

export interface RunReportBase<Confinement> {
  readonly runId: string;
  /** Whether the script was given to a worker. False means that nothing of it ran. */
  readonly started: boolean;
  readonly logs: readonly LogLine[];
  readonly logsTruncated: boolean;
  readonly usage: Usage;
  /** Every host call that reached the parent, by position, and whether it ran. */
  readonly calls: readonly CallRecord[];
  /** What a suspended run waits for; else empty. */
  readonly pending: readonly PendingCall[];
  readonly warnings: readonly WarningData[];
  /** What was live for the very worker that ran the script; null when there was none. */
  readonly confinement: Confinement | null;
}

export interface RunCompletedOf<Value, Confinement> extends RunReportBase<Confinement> {
  readonly ok: true;
  readonly status: "completed";
  readonly value: Value;
}

export interface RunFailedOf<Confinement> extends RunReportBase<Confinement> {
  readonly ok: false;
  readonly status: Exclude<Status, "completed">;
  readonly error: RunError;
}

export type RunResultOf<Value, Confinement> = RunCompletedOf<Value, Confinement> | RunFailedOf<Confinement>;
