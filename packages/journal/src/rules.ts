/**
 * The rules of a store that look at what is recorded, as plain functions: each throws `Refused` with the text that callers
 * get. Every store asks them with what it has loaded; a store on disk holds the same rules a second time as constraints.
 */

import type { Effect, WaitCondition } from "@flowcell/protocol";
import type { RunProgress, UnitResult } from "./store.js";

type Refusal = Extract<UnitResult, { readonly ok: false }>;

/** Why a unit is not applied. Stays inside a store: callers get a UnitResult. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly reason: Refusal["reason"];
  readonly index: number;

  constructor(reason: Refusal["reason"], message: string, index = 0) {
    super(message);
    this.reason = reason;
    this.index = index;
  }

  /** The same refusal, of the operation at this place. */
  at(index: number): Refused {
    return new Refused(this.reason, this.message, index);
  }

  result(): Refusal {
    return { ok: false, reason: this.reason, at: this.index, message: this.message };
  }
}

export function conflict(message: string): Refused {
  return new Refused("conflict", message);
}

export function fencedOff(runId: string): Refused {
  return new Refused("fenced", `run ${runId} is finished, gone, or held by another owner or generation`);
}

/** What a rule needs to know of a run. */
export interface RunHead {
  readonly runId: string;
  readonly nextOrder: number;
  readonly guestClockMs: number;
}

/** What a rule needs to know of a call. */
export interface CallHead {
  readonly effect: Effect;
  readonly wait: WaitCondition | null;
  /** Whether its outcome is recorded. */
  readonly settled: boolean;
}

export function mayDeliver(
  run: RunHead,
  { order, guestClockMs }: { readonly order: number; readonly guestClockMs: number },
): void {
  if (order !== run.nextOrder)
    throw conflict(`run ${run.runId}: delivery ${order} where ${run.nextOrder} is next`);
  if (guestClockMs < run.guestClockMs)
    throw conflict(
      `run ${run.runId}: the guest's clock would go back from ${run.guestClockMs} to ${guestClockMs}`,
    );
}

/** The call at a position; what it may not be is missing. */
export function recorded<Call>(call: Call | undefined, runId: string, position: number): Call {
  if (call === undefined) throw conflict(`run ${runId}: call ${position} is not recorded`);
  return call;
}

export function mustBeOpen(call: CallHead, runId: string, position: number): void {
  if (call.settled) throw conflict(`run ${runId}: call ${position} has its outcome already`);
}

export function mayBeBegun(call: CallHead, runId: string, position: number): void {
  mustBeOpen(call, runId, position);
  if (call.effect === "wait")
    throw conflict(`run ${runId}: call ${position} is a wait and has no effect to begin`);
}

export function mayBeUnknown(call: CallHead, reason: string | null, runId: string, position: number): void {
  if (reason === null) return;
  mustBeOpen(call, runId, position);
  if (call.effect !== "keyed" && call.effect !== "once")
    throw conflict(`run ${runId}: call ${position} has effect ${call.effect}, which is never unknown`);
}

export function mayBeLocal(call: CallHead, runId: string, position: number): void {
  if (call.effect !== "local")
    throw conflict(`run ${runId}: call ${position} has effect ${call.effect}, not local`);
}

export function mayTakeSignal(call: CallHead, name: string, runId: string, position: number): void {
  if (call.wait?.kind !== "signal" || call.wait.name !== name)
    throw conflict(`run ${runId}: call ${position} does not wait for the signal ${name}`);
}

/** The call itself, before it is recorded. */
export function mayBeRecorded(
  call: {
    readonly position: number;
    readonly effect: Effect;
    readonly wait: WaitCondition | null;
    readonly dueAt: number | null;
  },
  attempts: number,
  runId: string,
): void {
  const what = `run ${runId}: call ${call.position}`;
  if (call.wait !== null && call.effect !== "wait")
    throw conflict(`${what} has effect ${call.effect} and a condition to wait for`);
  if (call.dueAt !== null && call.wait === null) throw conflict(`${what} is due without waiting`);
  if (attempts !== 0 && call.effect === "wait")
    throw conflict(`${what} is a wait and has no effect to begin`);
}

/** A run's progress as it would be after a patch. */
export function mayProgress(
  runId: string,
  next: Pick<RunProgress, "state" | "status" | "finishedAt" | "endOrder" | "endStatus">,
  nextOrder: number,
): void {
  const { state, status } = next;
  const what = `run ${runId}: state ${state}`;
  const open = status === "suspended" || status === "needs_reconcile";
  switch (state) {
    case "pending":
    case "running":
      if (status !== null) throw conflict(`${what} has no status, not ${status}`);
      break;
    case "suspended":
      if (!open) throw conflict(`${what} needs status suspended or needs_reconcile, not ${status}`);
      break;
    case "finished":
      if (status === null || open) throw conflict(`${what} needs a status that ends a run, not ${status}`);
      break;
  }
  if ((state === "finished") !== (next.finishedAt !== null))
    throw conflict(`${what} and finishedAt ${next.finishedAt} contradict each other`);
  if ((next.endOrder === null) !== (next.endStatus === null))
    throw conflict(`run ${runId}: endOrder and endStatus come together`);
  if (next.endOrder !== null && next.endOrder > nextOrder)
    throw conflict(`run ${runId}: endOrder ${next.endOrder} where ${nextOrder} deliveries are recorded`);
  if (next.endStatus === "suspended" || next.endStatus === "needs_reconcile")
    throw conflict(`run ${runId}: endStatus needs a status that ends a run, not ${next.endStatus}`);
}

/** The lines of a `logs` operation that are not stored yet. */
export function newLines<Line extends { readonly seq: number }>(
  runId: string,
  lines: readonly Line[],
  nextLog: number,
): Line[] {
  const fresh: Line[] = [];
  for (const line of lines) {
    const next = nextLog + fresh.length;
    if (line.seq > next) throw conflict(`run ${runId}: log line ${line.seq} where ${next} is next`);
    if (line.seq === next) fresh.push(line);
  }
  return fresh;
}
