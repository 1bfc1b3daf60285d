/** One host call of a run, as its machine knows it; from `called`, or from the journal after a restart. */

import type { CallRow, NewCall } from "@flowcell/journal";
import type { CallNote, CallOutcome, Effect, EncodedValue, WaitCondition } from "@flowcell/protocol";

export type Stage =
  /** Recorded, and nobody is at it: another process was, or an operator said that it did not happen. */
  | "open"
  /** Made in a replay and not recorded: looked at when the replay is over. */
  | "held"
  | "classifying"
  /** Its record, or that of one more attempt, is on the way to the store. */
  | "recording"
  | "waiting"
  | "dispatched"
  | "proving"
  /** Recorded and waiting; whether its signal is there is asked. */
  | "taking"
  /** Nobody can say whether it happened: an operator must. */
  | "unknown"
  /** Its outcome is on the way to the store. */
  | "settling"
  | "done"
  /** The script ended; it was not begun, or what it did does not count. */
  | "dropped";

/** Why a call is classified. */
export type Purpose =
  | "begin"
  /** It may have happened, and may be begun again with its key. */
  | "repeat"
  /** It has not happened, though it has a record. */
  | "resume"
  | "prove";

export interface Call {
  readonly position: number;
  readonly name: string;
  readonly digest: string;
  args: EncodedValue;
  readonly idempotencyKey: string;
  readonly madeAt: number;
  stage: Stage;
  purpose: Purpose;
  /** Null until it was classified. */
  effect: Effect | null;
  /** Whether its row is in the store, or in a unit that was handed over. */
  recorded: boolean;
  attempts: number;
  note: CallNote | null;
  wait: WaitCondition | null;
  dueAt: number | null;
  /** By how much the clock was set back since the wait was recorded. */
  behindMs: number;
  callId: string | null;
  /** The script gave it up. */
  cancelled: boolean;
  /** Whether the store knows that. */
  cancelStored: boolean;
  unknownReason: string | null;
  /** What an operator or a proof says: it has not happened, whatever the row looks like. */
  notApplied: boolean;
  /** What a wait ended with before its row was there. */
  early: CallOutcome | null;
  outcome: CallOutcome | null;
}

export function madeCall(
  position: number,
  name: string,
  digest: string,
  args: EncodedValue,
  idempotencyKey: string,
  madeAt: number,
): Call {
  return {
    position,
    name,
    digest,
    args,
    idempotencyKey,
    madeAt,
    stage: "held",
    purpose: "begin",
    effect: null,
    recorded: false,
    attempts: 0,
    note: null,
    wait: null,
    dueAt: null,
    behindMs: 0,
    callId: null,
    cancelled: false,
    cancelStored: false,
    unknownReason: null,
    notApplied: false,
    early: null,
    outcome: null,
  };
}

export function recordedCall(row: CallRow, outcome: CallOutcome | null): Call {
  return {
    position: row.position,
    name: row.name,
    digest: row.digest,
    args: row.args,
    idempotencyKey: row.idempotencyKey,
    madeAt: row.madeAt,
    stage: outcome === null ? openStage(row) : "done",
    purpose: "resume",
    effect: row.effect,
    recorded: true,
    attempts: row.attempts,
    note: row.note,
    wait: row.wait,
    dueAt: row.dueAt,
    behindMs: 0,
    callId: row.callId,
    cancelled: row.cancelled,
    cancelStored: row.cancelled,
    unknownReason: row.unknownReason,
    notApplied: false,
    early: null,
    outcome,
  };
}

function openStage(row: CallRow): Stage {
  if (row.unknownReason !== null) return "unknown";
  return row.effect === "wait" && !row.cancelled ? "waiting" : "open";
}

/** What the store is to keep of it. */
export function rowOf(call: Call): NewCall {
  if (call.effect === null) throw new Error(`machine: call ${call.position} has no effect to record`);
  return {
    position: call.position,
    name: call.name,
    effect: call.effect,
    digest: call.digest,
    args: call.args,
    idempotencyKey: call.idempotencyKey,
    madeAt: call.madeAt,
    note: call.note,
    wait: call.wait,
    dueAt: call.dueAt,
    callId: call.callId,
  };
}

/** Whether it may have changed the world, so that its end must be on record. */
export function changesWorld({ effect }: Call): boolean {
  return effect === "keyed" || effect === "once";
}

/** Whether it is between two stable stages: what comes of it is decided without the script. */
export function inTransit({ stage }: Call): boolean {
  return (
    stage === "classifying" ||
    stage === "recording" ||
    stage === "proving" ||
    stage === "taking" ||
    stage === "settling"
  );
}
