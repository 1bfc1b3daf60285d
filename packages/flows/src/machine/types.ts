/**
 * What the state machine of a run takes and gives. The machine (machine.ts) is pure: events in, commands out, no clock, no
 * promise, no store. The engine carries commands out and reports back by events; the simulator does the same in a world of
 * its own, with crashes.
 *
 * An event that waits for something names it by what the command named (a position, a token). Commands of one event are
 * carried out in order; `commit` commands of a run reach the store in the order in which they were given, and `committed`
 * comes back in that order.
 */

import type { OperationResult, RunHistory, RunOperation } from "@flowcell/journal";
import type {
  CallNote,
  CallOutcome,
  ConsoleLevel,
  Effect,
  EncodedValue,
  LocalOperation,
  Recovery,
  Status,
  WaitCondition,
  WarningData,
} from "@flowcell/protocol";

/** A log line as a worker sends it; numbered within the run, since every activation begins the script anew. */
export interface LogLine {
  readonly seq: number;
  readonly level: ConsoleLevel;
  readonly guestTimeMs: number;
  readonly text: string;
}

/** How an activation ended, as far as the machine cares; the pool has the whole story. */
export interface ActivationEnd {
  readonly status: Status;
  readonly reason: string | null;
  /** Only when `completed`. */
  readonly value: EncodedValue | null;
  /** The error as callers get it, JSON text. */
  readonly errorJson: string | null;
  readonly warnings: readonly WarningData[];
  /** CPU time after the frontier: what was not recorded before. */
  readonly liveCpuUs: number;
  readonly heapPeakBytes: number;
  readonly confinementJson: string | null;
  /** Whether the script was given to a worker. */
  readonly started: boolean;
}

/** What reading a call's arguments found. */
export type Classified =
  /** Nothing was or will be done: the arguments are wrong, or the note could not be taken. */
  | { readonly kind: "answered"; readonly effect: Effect; readonly outcome: CallOutcome }
  | { readonly kind: "local"; readonly operation: LocalOperation; readonly bytesMax: number }
  | { readonly kind: "wait"; readonly condition: WaitCondition; readonly callId: string | null }
  | { readonly kind: "read" }
  | { readonly kind: "effect"; readonly effect: "keyed" | "once"; readonly note: CallNote | null };

export type Decision =
  /** The operator saw what happened. */
  | { readonly kind: "observed"; readonly outcome: CallOutcome }
  /** It did not happen: it is done now. */
  | { readonly kind: "not_applied" };

export type RunEvent =
  /** A worker may be had: begin an activation. Only after `wake`. */
  | { readonly kind: "go" }
  | {
      readonly kind: "called";
      readonly position: number;
      readonly name: string;
      readonly digest: string;
      readonly args: EncodedValue;
    }
  | { readonly kind: "classified"; readonly position: number; readonly as: Classified }
  /** The script cancelled it. */
  | { readonly kind: "callCancelled"; readonly position: number }
  | { readonly kind: "logged"; readonly line: LogLine }
  | { readonly kind: "blocked"; readonly nextTimerAt: number | null; readonly openCalls: number }
  /** The activation is over, whoever ended it. */
  | { readonly kind: "ended"; readonly end: ActivationEnd }
  /** In place of `ended`: the version may not run. Nothing of the activation ran, and there will be none. */
  | { readonly kind: "refused"; readonly end: ActivationEnd }
  | { readonly kind: "outcome"; readonly position: number; readonly outcome: CallOutcome }
  | { readonly kind: "recovered"; readonly position: number; readonly recovery: Recovery }
  | { readonly kind: "committed"; readonly token: number; readonly results: readonly OperationResult[] }
  /** Somebody else holds the run, or it is finished: nothing more is done for it. */
  | { readonly kind: "fenced"; readonly token: number }
  | { readonly kind: "alarm" }
  /** A signal of this name was stored. */
  | { readonly kind: "signalled"; readonly name: string }
  /** An approval was answered, or a run that this one waits for finished. */
  | { readonly kind: "waitDone"; readonly position: number; readonly outcome: CallOutcome }
  /** `revoked`: the version may not run any more. */
  | { readonly kind: "cancel"; readonly by: string; readonly reason: "caller" | "revoked" | "superseded" }
  | { readonly kind: "reconcile"; readonly position: number; readonly decision: Decision }
  /** Whether other runs wait for a worker. */
  | { readonly kind: "contended"; readonly others: boolean }
  /** The service is going down: suspend as soon as the script waits, begin nothing. */
  | { readonly kind: "drain" };

export type RunCommand =
  /** The run wants a worker; `go` when there is one. */
  | { readonly kind: "wake"; readonly notBefore: number }
  | {
      readonly kind: "activate";
      readonly guestClockMs: number;
      /** CPU time that the replay may take beside the activation's own budget. */
      readonly replayCpuMs: number;
    }
  /** The replay is over: the activation's own CPU budget begins. */
  | { readonly kind: "frontier" }
  | {
      readonly kind: "deliver";
      readonly position: number;
      readonly outcome: CallOutcome;
      readonly guestClockMs: number;
    }
  | { readonly kind: "fireTimer"; readonly guestClockMs: number }
  /** End the worker; `ended` follows with this status. */
  | {
      readonly kind: "endWorker";
      readonly status: Status;
      readonly reason: string;
      readonly message: string;
    }
  /** Read the arguments and say what the call is; answered by `classified`. */
  | {
      readonly kind: "classify";
      readonly position: number;
      readonly name: string;
      readonly args: EncodedValue;
      /** Whether the note of an effect is wanted: not for one that has an intent already. */
      readonly withNote: boolean;
    }
  /** Carry it out; answered by `outcome`. */
  | { readonly kind: "dispatch"; readonly position: number; readonly idempotencyKey: string }
  | { readonly kind: "abort"; readonly position: number; readonly why: string }
  /** Find out whether it happened before the crash; answered by `recovered`. */
  | {
      readonly kind: "recover";
      readonly position: number;
      readonly note: CallNote | null;
      readonly idempotencyKey: string;
    }
  | { readonly kind: "commit"; readonly token: number; readonly operations: readonly RunOperation[] }
  | {
      readonly kind: "quarantine";
      readonly position: number;
      readonly reason: "late" | "duplicate" | "contradictory" | "unknown_call";
      readonly outcome: CallOutcome | null;
    }
  /** Replaces the alarm that was asked for before; null for none. */
  | { readonly kind: "alarm"; readonly at: number | null }
  /**
   * Nothing is going on: the machine may be dropped and made again from the store. Follows the commit it rests on. `fenced`:
   * the run is somebody else's now, and nothing is known of it here.
   */
  | { readonly kind: "rest"; readonly state: "suspended" | "finished" | "fenced" };

export interface MachineOptions {
  readonly history: RunHistory;
  /** Of the engine that will run the script. */
  readonly fingerprint: string;
  /** Open for at most this long, blocked, when others wait. */
  readonly blockedMostMs: number;
  /** A wait due within this time keeps its worker. */
  readonly suspendAfterMs: number;
  /** An activation lasts at most this long; one that is blocked then is suspended. */
  readonly wallMs: number;
  /** Activations in a row that may fail for no fault of the script. */
  readonly failuresMost: number;
  /** Bytes of arguments and outcomes that the run may have on record. */
  readonly recordedBytesMost: number;
  /** Timers of the script that may fire in one run. */
  readonly timersMost: number;
  /** Timers and waits are due at once when nothing else is open: for tests of flows. */
  readonly virtualTime: boolean;
  /** Makes idempotency keys: the same for the same run and position. */
  readonly idempotencyKey: (position: number) => string;
}
