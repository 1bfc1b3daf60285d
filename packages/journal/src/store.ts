/**
 * What a store keeps and how it is asked: flows with their versions and schedules, runs with their calls and deliveries,
 * keys and values, signals, quarantine and audit. The engine of runs knows only this interface; `sqlite/` and `memory/`
 * implement it, a shared database can later. One conformance suite holds them all to it.
 *
 * A change is a *unit*: operations that happen together or not at all. Units are applied in the order in which `commit` is
 * called; many units may share one disk flush. When `commit` resolves with `ok`, the unit survives a crash of the process and
 * (durability `full`) of the machine.
 *
 * Kept true by the store itself, whatever its caller does:
 *   - a fenced unit changes nothing unless the run is unfinished and held by that very owner and generation;
 *   - deliveries of a run are numbered 0, 1, 2 … without gaps, and their clock never goes back;
 *   - an outcome exists only as a delivery, so never without its order; a call has at most one;
 *   - an outcome belongs to a call that was recorded before or in the same unit;
 *   - a finished run has a status and never changes again, but for its removal;
 *   - at most one version of a flow is approved; a version's content never changes;
 *   - (flow, deduplication key) names one run for ever, also after the run was removed.
 * A unit that would break one of these is refused whole, with `conflict`: a bug or a second owner, never data to repair.
 *
 * Times are epoch milliseconds of the parent's clock unless a name says guest.
 */

import type {
  CallNote,
  CallOutcome,
  ConsoleLevel,
  Effect,
  EncodedValue,
  LocalOperation,
  Status,
  WaitCondition,
} from "@flowcell/protocol";

// -------------------------------------------------------------------------------------------------------------------- runs

export type RunState = "pending" | "running" | "suspended" | "finished";

/** Why a run exists. */
export type Trigger =
  | { readonly kind: "manual"; readonly by: string }
  | { readonly kind: "cron"; readonly scheduledAt: number }
  | { readonly kind: "event"; readonly eventId: string; readonly name: string }
  | { readonly kind: "flow"; readonly runId: string; readonly position: number }
  | { readonly kind: "retry"; readonly of: string };

/** What never changes about a run. */
export interface NewRun {
  /** `run_` and 22 characters: unguessable. */
  readonly runId: string;
  readonly flow: string;
  readonly versionHash: string;
  readonly trigger: Trigger;
  /** The same key of the same flow never makes a second run. */
  readonly deduplicationKey: string | null;
  /** Runs of a flow with the same key take turns. */
  readonly concurrencyKey: string;
  readonly input: EncodedValue;
  /** 32 bytes as hexadecimal. */
  readonly seed: string;
  /** Where the guest's clock starts. */
  readonly guestStartMs: number;
  readonly createdAt: number;
  /** Not before this time. */
  readonly notBefore: number;
  /** Unsuspended time that the run may take. */
  readonly deadlineMs: number;
  /** 1 for the first; the retry policy counts these. */
  readonly attempt: number;
}

/** What a run has done so far. */
export interface RunProgress {
  readonly state: RunState;
  /** Of the outcome table: when finished; `suspended` or `needs_reconcile` when suspended; else null. */
  readonly status: Status | null;
  /** The reason, `error.code` for callers. */
  readonly reason: string | null;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** When its state last changed. */
  readonly changedAt: number;
  /** Unsuspended time used up to `changedAt`. */
  readonly activeMs: number;
  /** Earliest time at which an open wait is due, or a retry; null for none. Only an index for the scheduler. */
  readonly dueAt: number | null;
  readonly activations: number;
  /** Activations in a row that ended for no fault of the script. */
  readonly failures: number;
  /** CPU time of the whole recorded history, each part counted once. */
  readonly cpuUs: number;
  readonly heapPeakBytes: number;
  /** Of the engine that recorded the history; null before the first activation. */
  readonly fingerprint: string | null;
  /**
   * How many deliveries there were when the script ended, and how it ended, while effects that were begun are waited for;
   * deliveries after that are on record only. Null before, and when there was nothing to wait for.
   */
  readonly endOrder: number | null;
  readonly endStatus: Status | null;
  readonly result: EncodedValue | null;
  /** The error as callers get it, JSON text; null when there is none. */
  readonly errorJson: string | null;
  /** Warnings, JSON text of an array. */
  readonly warningsJson: string;
  /** The confinement of the last worker, JSON text. */
  readonly confinementJson: string | null;
  readonly cancelRequestedBy: string | null;
}

export type RunPatch = Partial<RunProgress>;

export interface RunRow extends NewRun, RunProgress {
  /** Null until a process claims it. */
  readonly owner: string | null;
  readonly generation: number;
  readonly nextOrder: number;
  /** Of the last delivery; `guestStartMs` before the first. */
  readonly guestClockMs: number;
  /** Lines stored so far; the next has this number. */
  readonly nextLog: number;
}

export interface NewCall {
  /** Given by the worker when the script makes the call. */
  readonly position: number;
  readonly name: string;
  readonly effect: Effect;
  /** SHA-256 over name, text, form and attachments, hexadecimal. */
  readonly digest: string;
  readonly args: EncodedValue;
  readonly idempotencyKey: string;
  readonly madeAt: number;
  readonly note: CallNote | null;
  /** For effect `wait`. */
  readonly wait: WaitCondition | null;
  /** When the wait ends by itself. */
  readonly dueAt: number | null;
  /** For approvals: `call_` and 22 characters, by which the answer comes. */
  readonly callId: string | null;
}

export interface CallRow extends NewCall {
  /** How often the effect was begun: 0 for waits. */
  readonly attempts: number;
  readonly cancelled: boolean;
  /** Set when nobody can say whether the effect happened; an operator must. */
  readonly unknownReason: string | null;
}

/** One thing that was delivered to the script, in order. */
export type Delivery =
  | {
      readonly order: number;
      readonly kind: "call";
      readonly guestClockMs: number;
      readonly position: number;
      readonly outcome: CallOutcome;
      readonly at: number;
    }
  | { readonly order: number; readonly kind: "timer"; readonly guestClockMs: number; readonly at: number };

export interface LogRow {
  /** 0, 1, 2 … within the run. */
  readonly seq: number;
  readonly level: ConsoleLevel;
  readonly guestTimeMs: number;
  readonly text: string;
}

/** A run with everything that a replay needs. Bytes that are stored once may be shared within it: not to be changed. */
export interface RunHistory {
  readonly run: RunRow;
  /** By position. */
  readonly calls: readonly CallRow[];
  /** By order. */
  readonly deliveries: readonly Delivery[];
}

export type OutcomeHead =
  | { readonly ok: true; readonly bytes: number }
  | Extract<CallOutcome, { readonly ok: false }>;

export type CallHead = Omit<CallRow, "args"> & { readonly argsBytes: number };

export type DeliveryHead =
  | (Omit<Extract<Delivery, { readonly kind: "call" }>, "outcome"> & { readonly outcome: OutcomeHead })
  | Extract<Delivery, { readonly kind: "timer" }>;

/** A run's history without what its calls were given and what they returned: sizes in place of both. */
export interface RunHeads {
  readonly run: RunRow;
  /** By position. */
  readonly calls: readonly CallHead[];
  /** By order. */
  readonly deliveries: readonly DeliveryHead[];
}

/** A call that waits, across runs. */
export interface OpenWait {
  readonly runId: string;
  readonly flow: string;
  readonly position: number;
  readonly wait: WaitCondition;
  readonly dueAt: number | null;
  readonly callId: string | null;
  readonly madeAt: number;
}

// ------------------------------------------------------------------------------------------------------------------- flows

export type VersionState = "installed" | "approved" | "rejected" | "superseded" | "revoked";

/** What is installed. Never changes. */
export interface NewVersion {
  readonly flow: string;
  /** The approval hash. */
  readonly hash: string;
  readonly manifestText: string;
  /** The script as workers get it. */
  readonly bundle: string;
  /** How its positions map to the author's files, as packages/bundle wrote it. */
  readonly bundleMap: string;
  /** The author's files, for review: relative POSIX paths. */
  readonly sources: readonly { readonly path: string; readonly text: string }[];
  readonly installedAt: number;
  readonly installedBy: string;
  /** What the dry run would have called, JSON text; null when there was none. */
  readonly dryRunJson: string | null;
}

export interface VersionRow extends NewVersion {
  /** 1, 2, 3 … within the flow. */
  readonly number: number;
  readonly state: VersionState;
  readonly decidedAt: number | null;
  readonly decidedBy: string | null;
  readonly decisionReason: string | null;
}

export interface FlowRow {
  readonly flow: string;
  readonly enabled: boolean;
  readonly disabledBy: string | null;
  readonly disabledReason: string | null;
  readonly approvedHash: string | null;
  /** Finished runs in a row that ended by violation. */
  readonly violationsInARow: number;
  readonly changedAt: number;
  /** The next time of its cron trigger; null when it has none. */
  readonly nextFireAt: number | null;
}

export interface QuarantineRow {
  readonly runId: string;
  readonly position: number;
  readonly at: number;
  /** late, duplicate, contradictory, unknown_call. */
  readonly reason: string;
  readonly outcome: CallOutcome | null;
}

export interface AuditRow {
  readonly at: number;
  readonly actor: string;
  /** For example flow.approve. */
  readonly action: string;
  readonly flow: string | null;
  readonly runId: string | null;
  readonly detail: string;
}

// -------------------------------------------------------------------------------------------------------------------- units

/** Who may change a run. */
export interface Fence {
  readonly runId: string;
  readonly owner: string;
  readonly generation: number;
}

/** Operations on the run of the unit's fence. */
export type RunOperation =
  | { readonly kind: "call"; readonly call: NewCall; readonly attempts: number }
  /** The effect is begun once more. */
  | { readonly kind: "attempt"; readonly position: number }
  | { readonly kind: "cancelCall"; readonly position: number }
  | { readonly kind: "unknown"; readonly position: number; readonly reason: string | null }
  | {
      readonly kind: "deliver";
      readonly order: number;
      readonly guestClockMs: number;
      readonly position: number;
      readonly outcome: CallOutcome;
      readonly at: number;
    }
  | { readonly kind: "timer"; readonly order: number; readonly guestClockMs: number; readonly at: number }
  /** Carries the operation out on the flow's keys and values and delivers its outcome; result `outcome`. */
  | {
      readonly kind: "local";
      readonly order: number;
      readonly guestClockMs: number;
      readonly position: number;
      readonly operation: LocalOperation;
      readonly bytesMax: number;
      readonly at: number;
    }
  /**
   * Takes the oldest signal of this name that nobody took, and delivers its value to the call; result `signal` is null, and
   * nothing is delivered, when there is none.
   */
  | {
      readonly kind: "takeSignal";
      readonly order: number;
      readonly guestClockMs: number;
      readonly position: number;
      readonly name: string;
      readonly at: number;
    }
  /** Lines whose numbers are stored already are dropped; a gap is a conflict. */
  | { readonly kind: "logs"; readonly lines: readonly LogRow[] }
  | { readonly kind: "run"; readonly patch: RunPatch };

/** Operations that need no fence. */
export type FreeOperation =
  /** Result `run`: created or not, and the id of the run that the deduplication key names. */
  | { readonly kind: "createRun"; readonly run: NewRun }
  /** Takes an unfinished run under a new generation; result `claim`. */
  | { readonly kind: "claim"; readonly runId: string; readonly owner: string }
  /** Result `sent`: false when the run is finished or not there, or when the same signalId was sent before. */
  | {
      readonly kind: "sendSignal";
      readonly runId: string;
      readonly name: string;
      readonly value: EncodedValue;
      readonly signalId: string;
      readonly at: number;
    }
  | { readonly kind: "quarantine"; readonly row: QuarantineRow }
  | { readonly kind: "audit"; readonly row: AuditRow }
  /** Result `version`: its number; the same hash again changes nothing. Makes the flow's row if there is none. */
  | { readonly kind: "addVersion"; readonly version: NewVersion }
  /** `approved` makes the version that was approved before `superseded`. */
  | {
      readonly kind: "decideVersion";
      readonly flow: string;
      readonly hash: string;
      readonly state: Exclude<VersionState, "installed" | "superseded">;
      readonly by: string;
      readonly reason: string | null;
      readonly at: number;
    }
  | {
      readonly kind: "flow";
      readonly flow: string;
      readonly patch: Partial<
        Pick<
          FlowRow,
          "enabled" | "disabledBy" | "disabledReason" | "violationsInARow" | "nextFireAt" | "changedAt"
        >
      >;
    }
  /** Keeps an event for ever under its id, so that it is handed out once; result `event`: false when it was there. */
  | {
      readonly kind: "event";
      readonly eventId: string;
      readonly name: string;
      readonly value: EncodedValue;
      readonly at: number;
    };

export type Operation = RunOperation | FreeOperation;

export interface Unit {
  /** Needed by run operations: all of them are on this run. */
  readonly fence?: Fence;
  readonly operations: readonly Operation[];
}

/** One for each operation, in order. */
export type OperationResult =
  | { readonly kind: "done" }
  | { readonly kind: "outcome"; readonly outcome: CallOutcome }
  | { readonly kind: "signal"; readonly value: EncodedValue | null }
  | { readonly kind: "run"; readonly created: boolean; readonly runId: string }
  | { readonly kind: "claim"; readonly generation: number }
  | { readonly kind: "sent"; readonly sent: boolean }
  | { readonly kind: "version"; readonly number: number; readonly added: boolean }
  | { readonly kind: "event"; readonly added: boolean };

export type UnitResult =
  | { readonly ok: true; readonly results: readonly OperationResult[] }
  /** `fenced`: the run is finished, gone, or somebody else's. `conflict`: a rule of the store would break; `at` tells where. */
  | {
      readonly ok: false;
      readonly reason: "fenced" | "conflict";
      readonly at: number;
      readonly message: string;
    };

// -------------------------------------------------------------------------------------------------------------------- store

export interface RunQuery {
  readonly flow?: string;
  readonly states?: readonly RunState[];
  readonly statuses?: readonly Status[];
  /** Newest first; those created before this run, for the next page. */
  readonly before?: string;
  /** 1 to 1000. */
  readonly limit: number;
}

export interface StoreStats {
  readonly bytes: number;
  readonly units: number;
  readonly flushes: number;
  /** Of the last 1000 flushes: the time of the transaction's end alone. */
  readonly flushP50Ms: number;
  readonly flushP99Ms: number;
  readonly lastError: string | null;
}

export interface Retention {
  /** Runs that finished before this are removed; their deduplication keys stay. */
  readonly finishedBefore: number;
  /** At most this many at a time, oldest first; fewer when they are long, so that nobody waits long for it. */
  readonly runsMax: number;
  /** Only runs of this flow; of every flow when absent. */
  readonly flow?: string;
}

/** The store cannot go on: the disk failed or the store is closed. Nothing that was not acknowledged can be relied on. */
export class StoreFailure extends Error {
  override readonly name = "StoreFailure";
}

/** Another process holds the store. */
export class StoreHeld extends Error {
  override readonly name = "StoreHeld";
}

/** The store was written by a newer flowcell, or is none. */
export class StoreUnreadable extends Error {
  override readonly name = "StoreUnreadable";
}

/**
 * Every method rejects with StoreFailure once the store has failed; a failed flush is never tried again. Reads see every
 * unit that was committed (resolved) before they were asked.
 */
export interface Store {
  commit(unit: Unit): Promise<UnitResult>;

  run(runId: string): Promise<RunRow | null>;
  history(runId: string): Promise<RunHistory | null>;
  /** Costs as much as the run has calls, however large they are. */
  heads(runId: string): Promise<RunHeads | null>;
  /** What a call was answered with; null before that, and when there is no such call. */
  outcome(runId: string, position: number): Promise<CallOutcome | null>;
  logs(runId: string): Promise<readonly LogRow[]>;
  runs(query: RunQuery): Promise<readonly RunRow[]>;
  /** Every run that is not finished, oldest first. */
  unfinished(): Promise<readonly RunRow[]>;
  waits(): Promise<readonly OpenWait[]>;
  callById(callId: string): Promise<{ readonly runId: string; readonly call: CallRow } | null>;

  flow(flow: string): Promise<FlowRow | null>;
  flows(): Promise<readonly FlowRow[]>;
  version(flow: string, hash: string): Promise<VersionRow | null>;
  /** Newest first, without bundle, map and sources. */
  versions(flow: string): Promise<readonly Omit<VersionRow, "bundle" | "bundleMap" | "sources">[]>;

  quarantined(runId: string | null): Promise<readonly QuarantineRow[]>;
  /** Newest first. */
  audit(limit: number): Promise<readonly AuditRow[]>;

  /** Removes some of what retention lets go; answers how many runs, 0 when there was nothing more. */
  retain(retention: Retention): Promise<number>;
  stats(): Promise<StoreStats>;
  /** Lets everything that was asked finish, then closes. Twice is fine. */
  close(): Promise<void>;
}
