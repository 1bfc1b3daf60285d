/**
 * The recovery table: what may be done about a call that is recorded and has no outcome, when a process takes up a run that
 * another left. The engine of runs asks `recoveryOf`; docs/JOURNAL.md shows the rows.
 *
 * It trusts the journal alone: an intent (`attempts` ≥ 1) is committed before its effect begins, so a call of effect `keyed`
 * or `once` without an attempt cannot have had one. Kept true: a call of effect `once` that was begun is never begun again
 * by this table, and no call falls through it.
 */

import type { Effect } from "@flowcell/protocol";
import type { CallRow } from "./store.js";

/** What the engine does, by action. */
export const recoveryActions = {
  wait: "leaves the row as it is: its condition or its time completes it",
  again: "begins the call: what it did before, if anything, does not count",
  again_same_key: "begins the call with the idempotency key of the row: the other side counts it once",
  prove:
    "asks the host function what happened; delivers if it was applied, begins if not, else marks the call unknown",
  reconcile:
    "waits for an operator, who says what was observed, that nothing happened, or that the run is cancelled",
  cancelled:
    "delivers the error `cancelled`: the script gave the call up, and nothing outside can have happened",
} as const;

export type RecoveryKind = keyof typeof recoveryActions;

export interface RecoveryRow {
  /** Null: any. */
  readonly effect: Effect | null;
  /** Whether the effect was begun; null: either. */
  readonly begun: boolean | null;
  /** Whether the script gave the call up; null: either. */
  readonly cancelled: boolean | null;
  /** Whether it is marked as unknown; null: either. */
  readonly unknown: boolean | null;
  readonly action: RecoveryKind;
  readonly reason: string;
}

export type RecoveryAction = Pick<RecoveryRow, "action" | "reason">;

const any = { effect: null, begun: null, cancelled: null, unknown: null } as const;

/** The first row that fits decides. */
export const recoveryTable: readonly RecoveryRow[] = Object.freeze([
  { ...any, unknown: true, action: "reconcile", reason: "nobody could say whether the effect happened" },
  {
    ...any,
    effect: "wait",
    cancelled: true,
    action: "cancelled",
    reason: "the script gave up waiting, and a wait has no effect",
  },
  { ...any, effect: "wait", action: "wait", reason: "its condition or its time is in the row" },
  {
    ...any,
    effect: "local",
    cancelled: true,
    action: "cancelled",
    reason: "the effect and its outcome are one transaction, so it did not happen",
  },
  {
    ...any,
    effect: "local",
    action: "again",
    reason: "the effect and its outcome are one transaction, so it did not happen",
  },
  {
    ...any,
    effect: "read",
    cancelled: true,
    action: "cancelled",
    reason: "a read changes nothing, and the script no longer wants its result",
  },
  { ...any, effect: "read", action: "again", reason: "a read changes nothing" },
  {
    ...any,
    effect: "keyed",
    begun: false,
    cancelled: true,
    action: "cancelled",
    reason: "an attempt is recorded before it begins, so it was never sent",
  },
  {
    ...any,
    effect: "keyed",
    action: "again_same_key",
    reason: "the other side counts one key once, and its answer tells how the call ended",
  },
  {
    ...any,
    effect: "once",
    begun: false,
    cancelled: true,
    action: "cancelled",
    reason: "an attempt is recorded before it begins, so it did not happen",
  },
  {
    ...any,
    effect: "once",
    begun: false,
    action: "again",
    reason: "an attempt is recorded before it begins, so it did not happen",
  },
  { ...any, effect: "once", action: "prove", reason: "it was begun and may have happened" },
] satisfies readonly RecoveryRow[]);

/** What may be done about a recorded call that has no outcome. */
export function recoveryOf(
  call: Pick<CallRow, "effect" | "attempts" | "cancelled" | "unknownReason">,
): RecoveryAction {
  const begun = call.attempts > 0;
  const unknown = call.unknownReason !== null;
  for (const row of recoveryTable) {
    if (
      (row.effect ?? call.effect) === call.effect &&
      (row.begun ?? begun) === begun &&
      (row.cancelled ?? call.cancelled) === call.cancelled &&
      (row.unknown ?? unknown) === unknown
    ) {
      return { action: row.action, reason: row.reason };
    }
  }
  throw new Error(`recovery: no row for a call of effect ${call.effect}`);
}
