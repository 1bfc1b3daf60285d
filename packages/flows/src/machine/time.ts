/**
 * What happens because time passes: the deadline, waits and timers that are due, suspension. Looked at after every event, so
 * an alarm is asked for only about what lies ahead.
 */

import type { Delivery } from "@flowcell/journal";
import { inTransit } from "./call.js";
import { close, expire, runError } from "./ending.js";
import type { Run } from "./run.js";
import { callsGoOn, dueAt, park, resumeForTimer, suspend } from "./suspending.js";
import { earliestWait, endDueWaits } from "./waits.js";

/** An activation that is blocked and has used this part of its time is suspended: the rest is for what comes then. */
const wallPart = 0.75;

/** The clock says it is `now`: what goes by it goes on from there, also when it was set back. */
export function readClock(run: Run, now: number): void {
  if (!run.readClock(now)) return;
  // Whoever takes the run up next counts from what is stored.
  if (run.phase === "suspended" && !run.needsReconcile && dueAt(run) !== null) park(run);
}

export function passTime(run: Run): void {
  checkDeadline(run);
  if (run.options.virtualTime) return;
  if (run.phase === "suspended") {
    if (run.needsReconcile || endDueWaits(run, run.now)) return;
    if (run.restDueAt !== null && run.restDueAt <= run.now) resumeForTimer(run);
  } else if (run.phase === "pending" || run.phase === "active" || run.phase === "suspending") {
    endDueWaits(run, run.now);
  }
}

function checkDeadline(run: Run): void {
  const { deadlineAt } = run;
  if (deadlineAt === null || run.now < deadlineAt || run.expired) return;
  switch (run.phase) {
    case "closing":
      expire(run);
      return;
    case "pending":
    case "active":
    case "suspending": {
      const message = `the run took ${run.activeMs} ms; its deadline is ${run.row.deadlineMs} ms (deadline of the manifest)`;
      const error = runError("deadline", "TimedOut", message);
      close(run, { status: "timed_out", reason: "deadline", ...error }, message);
      return;
    }
    case "suspended":
    case "finished":
    case "fenced":
      return;
  }
}

/** The script waits, and nothing else is on its way: a timer, a jump of virtual time, or the end of the activation. */
export function decideBlocked(run: Run): void {
  const { blocked } = run.pump;
  if (run.phase !== "active" || blocked === null || !run.pump.atFrontier || !run.quiet) return;
  for (const call of run.open.values()) if (inTransit(call)) return;
  const { nextTimerAt } = blocked;
  const { timerDueAt } = run;
  const wait = earliestWait(run);
  const calls = callsGoOn(run);
  if (nextTimerAt === null && blocked.openCalls === 0) {
    // A correct worker ends such a script: it could wait for ever, and hold its place.
    const message = "the worker waits for nothing";
    const error = runError("unexpected_message", "Violation", message);
    close(run, { status: "violation", reason: "unexpected_message", ...error }, message);
    return;
  }
  if (run.options.virtualTime) {
    if (!calls && jump(run, nextTimerAt, wait)) return;
  } else if (nextTimerAt !== null && timerDueAt !== null && timerDueAt <= run.now) {
    fireTimer(run, nextTimerAt);
    return;
  }
  const soonest = Math.min(timerDueAt ?? Number.POSITIVE_INFINITY, wait ?? Number.POSITIVE_INFINITY);
  const idle = !calls && soonest > run.time + run.options.suspendAfterMs;
  if (!idle && !mustYield(run)) return;
  const reason = calls ? "calls" : "waiting";
  suspend(run, { status: "suspended", reason, message: "the run waits and lets its worker go" });
}

function mustYield(run: Run): boolean {
  const { blockedMostMs } = run.options;
  return (
    run.draining || (run.contended && run.now - run.blockedAt >= blockedMostMs) || run.now >= yieldAt(run)
  );
}

function yieldAt(run: Run): number {
  return run.activatedAt + wallPart * run.options.wallMs;
}

/** Nothing else can happen: the earliest of timers and waits happens now. */
function jump(run: Run, nextTimerAt: number | null, wait: number | null): boolean {
  if (nextTimerAt !== null && (wait === null || nextTimerAt <= wait)) fireTimer(run, nextTimerAt);
  else if (wait !== null) endDueWaits(run, wait);
  else return false;
  return true;
}

function fireTimer(run: Run, dueAt: number): void {
  let timer: Delivery;
  run.step({
    build: (unit) => {
      if (run.phase === "active" && run.pump.blocked !== null) timer = unit.timer(dueAt);
    },
    done: () => run.give(timer),
  });
}

/** The next time at which something happens by itself, beyond what was looked at now. */
export function nextAlarm(run: Run): number | null {
  const { virtualTime, blockedMostMs } = run.options;
  const ahead = new Earliest(run.now);
  switch (run.phase) {
    case "pending":
    case "suspending":
      ahead.take(run.deadlineAt);
      if (!virtualTime) ahead.take(earliestWait(run));
      break;
    case "active": {
      ahead.take(run.deadlineAt);
      if (!virtualTime) ahead.take(earliestWait(run));
      if (run.pump.blocked === null) break;
      ahead.take(Math.ceil(yieldAt(run)));
      if (!virtualTime) ahead.take(run.timerDueAt);
      if (run.contended) ahead.take(run.blockedAt + blockedMostMs);
      break;
    }
    case "suspended":
      if (!virtualTime && !run.needsReconcile) ahead.take(dueAt(run));
      break;
    case "closing":
      if (!run.expired) ahead.take(run.deadlineAt);
      break;
    case "finished":
    case "fenced":
      break;
  }
  return ahead.at;
}

/** The earliest of several times that are still to come. */
class Earliest {
  readonly #now: number;
  at: number | null = null;

  constructor(now: number) {
    this.#now = now;
  }

  take(at: number | null): void {
    if (at !== null && at > this.#now && (this.at === null || at < this.at)) this.at = at;
  }
}
