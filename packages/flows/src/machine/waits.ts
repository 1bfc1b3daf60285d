/**
 * Calls of effect `wait`: recorded with what they wait for, then open until it comes. They hold nothing in this process, so
 * a run whose calls all wait can be suspended.
 */

import type { CallOutcome } from "@flowcell/protocol";
import type { Call } from "./call.js";
import { failed, waitedOut, waitMostMs } from "./outcomes.js";
import type { Run } from "./run.js";
import type { DeliveryOf } from "./unit.js";

export function recordWait(run: Run, call: Call): void {
  const { wait } = call;
  if (wait === null) throw new Error(`machine: call ${call.position} waits for nothing`);
  const most = waitMostMs(wait);
  call.dueAt = most === null ? null : (run.options.virtualTime ? run.time : call.madeAt) + most;
  call.stage = "recording";
  let taken: DeliveryOf | null = null;
  run.step({
    build: (unit) => {
      if (call.stage !== "recording") return;
      run.record(unit, call);
      if (wait.kind === "signal") taken = unit.takeSignal(call.position, wait.name);
    },
    done: (results) => {
      const last = results.at(-1);
      if (taken !== null && last?.kind === "signal" && last.value !== null)
        run.delivered(call, taken({ ok: true, value: last.value }));
      else goesOn(run, call);
    },
  });
}

/** It is recorded, and what it waits for has not come. */
function goesOn(run: Run, call: Call): void {
  if (run.phase === "closing") run.drop(call);
  else if (call.cancelled) run.settle(call, failed("cancelled", "the script gave up waiting"));
  else if (call.early !== null) run.settle(call, call.early);
  else call.stage = "waiting";
}

/** Asks the store for signals that may have come, one unit for each: only it knows whether there is one. */
export function takeSignals(run: Run): void {
  // What is taken now could not be given to the script before an operator has spoken.
  if (run.signals.size === 0 || run.needsReconcile) return;
  for (const name of run.signals) {
    const waiting = firstWaiting(run, name);
    if (waiting === "asked") continue;
    run.signals.delete(name);
    if (waiting !== null) takeSignal(run, waiting, name);
  }
}

/** The call whose turn it is; `asked`: the store is being asked for one already. */
function firstWaiting(run: Run, name: string): Call | "asked" | null {
  let first: Call | null = null;
  for (const call of run.open.values()) {
    if (call.wait?.kind !== "signal" || call.wait.name !== name) continue;
    if (call.stage === "taking" || call.stage === "recording") return "asked";
    if (call.stage === "waiting" && (first === null || call.position < first.position)) first = call;
  }
  return first;
}

function takeSignal(run: Run, call: Call, name: string): void {
  call.stage = "taking";
  let taken: DeliveryOf;
  run.step({
    build: (unit) => {
      if (call.stage === "taking") taken = unit.takeSignal(call.position, name);
    },
    done: ([result]) => {
      if (result?.kind !== "signal") throw new Error("machine: a signal was taken without a result");
      if (result.value === null) {
        goesOn(run, call);
        return;
      }
      run.delivered(call, taken({ ok: true, value: result.value }));
      // There may be more of them, for others that wait.
      run.signals.add(name);
    },
  });
}

/** Every signal that is waited for may have come while nobody looked. */
export function lookForSignals(run: Run): void {
  for (const { wait, stage } of run.open.values())
    if (stage === "waiting" && wait?.kind === "signal") run.signals.add(wait.name);
}

/** The condition came true: an approval was answered, or the other run ended. */
export function waitDone(run: Run, position: number, outcome: CallOutcome): void {
  const call = run.calls.get(position);
  if (call === undefined) run.say({ kind: "quarantine", position, reason: "unknown_call", outcome });
  else if (call.stage === "waiting") run.settle(call, outcome);
  else if (call.stage === "classifying" || call.stage === "recording") call.early ??= outcome;
  else run.quarantine(call, outcome);
}

/** The earliest time at which an open wait ends by itself. */
export function earliestWait(run: Run): number | null {
  let earliest: number | null = null;
  for (const call of run.open.values()) {
    const dueAt = call.stage === "waiting" ? dueOf(call) : null;
    if (dueAt !== null && (earliest === null || dueAt < earliest)) earliest = dueAt;
  }
  return earliest;
}

/** By the clock as it goes now. */
function dueOf({ dueAt, behindMs }: Call): number | null {
  return dueAt === null ? null : dueAt - behindMs;
}

/** Ends the waits whose time has come, in the order in which they were due. Returns whether there were any. */
export function endDueWaits(run: Run, time: number): boolean {
  const earliest = earliestWait(run);
  if (earliest === null || earliest > time) return false;
  const due: { readonly call: Call; readonly dueAt: number; readonly outcome: CallOutcome }[] = [];
  for (const call of run.open.values()) {
    const { stage, dueAt, wait } = call;
    if (stage === "waiting" && wait !== null && dueAt !== null && dueAt - call.behindMs <= time)
      due.push({ call, dueAt, outcome: waitedOut(call.name, wait) });
  }
  due.sort((one, other) => one.dueAt - other.dueAt || one.call.position - other.call.position);
  for (const { call, dueAt, outcome } of due) run.settle(call, outcome, dueAt);
  return true;
}
