/**
 * The machine of one run: events in, commands out (types.ts). Made by the engine from the run's history after it has claimed
 * the run; it outlives activations, since calls may go on in this process while the run is suspended. Pure: no clock, no
 * promise, no store, so the simulator can try it against every order of events and a crash after every command.
 *
 * What it is about is spread over files by phase: making.ts (calls), waits.ts, pump.ts (what is delivered when),
 * recovering.ts (after a restart), time.ts (timers, deadline), suspending.ts, ending.ts,
 * bounds.ts; run.ts is what they share.
 *
 * Kept true, and checked by the simulator after every step:
 *   - nothing is delivered before it is committed, and no effect is begun before its intent is;
 *   - a call of effect `once` is begun again only when a proof or an operator says that it has not happened;
 *   - a replay gets exactly what was recorded, in its order, and begins nothing until it is over;
 *   - a run that is suspended holds no worker, and none of its outcomes is left lying;
 *   - once fenced, nothing is written.
 *
 * It throws only for a bug, its own or the engine's. TRUST: what a worker says is a script's; see pump.ts and making.ts.
 */

import { holdToBounds } from "./bounds.js";
import { inTransit } from "./call.js";
import { cancel, close, closeAgain, complete, diverge, ended, fence, refused, runError } from "./ending.js";
import { callCancelled, called, classified, classify, outcome } from "./making.js";
import { reconcile, recovered, recoverOpen } from "./recovering.js";
import { Run } from "./run.js";
import { becomePending, park, somethingCame } from "./suspending.js";
import { decideBlocked, nextAlarm, passTime, readClock } from "./time.js";
import type { MachineOptions, RunCommand, RunEvent } from "./types.js";
import { lookForSignals, takeSignals, waitDone } from "./waits.js";

/** What a replay may take beside what was recorded: starting costs time too. */
const replayCpuExtraMs = 1_000;

export class RunMachine {
  readonly #run: Run;
  /** The alarm that was asked for last. */
  #alarmAt: number | null = null;

  constructor(options: MachineOptions) {
    this.#run = new Run(options);
  }

  /** Once, after the claim. */
  start(now: number): readonly RunCommand[] {
    const run = this.#run;
    run.firstClock(now);
    begin(run);
    return this.#settle();
  }

  handle(event: RunEvent, now: number): readonly RunCommand[] {
    const run = this.#run;
    readClock(run, now);
    if (event.kind === "alarm") this.#alarmAt = null;
    if (run.phase === "fenced") {
      // Only whether the worker is gone is of interest.
      if (event.kind === "ended") run.working = false;
    } else {
      react(run, event);
    }
    return this.#settle();
  }

  /** Whatever follows by itself from where things stand now. */
  #settle(): readonly RunCommand[] {
    const run = this.#run;
    passTime(run);
    holdToBounds(run);
    takeSignals(run);
    pumpOut(run);
    do {
      decideBlocked(run);
      complete(run);
    } while (run.flush());
    const alarmAt = nextAlarm(run);
    if (alarmAt !== this.#alarmAt) {
      this.#alarmAt = alarmAt;
      run.say({ kind: "alarm", at: alarmAt });
    }
    rest(run);
    return run.take();
  }
}

/** Where a claimed run goes on. */
function begin(run: Run): void {
  const { row, now } = run;
  if (row.state === "finished") throw new Error("machine: the run is finished");
  if (row.endOrder !== null) {
    run.countTime(now);
    closeAgain(run);
    return;
  }
  if (row.cancelRequestedBy !== null) {
    const by = row.cancelRequestedBy;
    const error = runError("caller", "Cancelled", `the run was cancelled by ${by}`);
    close(run, { status: "cancelled", reason: "caller", ...error, by }, "");
    return;
  }
  lookForSignals(run);
  if (run.needsReconcile) {
    run.phase = "suspended";
    if (row.status !== "needs_reconcile") park(run);
    return;
  }
  if (row.state === "suspended" && row.reason === "waiting" && !somethingCame(run)) {
    run.phase = "suspended";
    if (row.changedAt > now) park(run);
    return;
  }
  if (row.state === "suspended") {
    // Its calls went on in the process that is gone.
    run.phase = "suspended";
    run.step({
      build: (unit) => run.changeState(unit, "pending", { status: null, reason: null, dueAt: null }),
      done: () => {
        if (run.phase === "suspended") becomePending(run, 0);
      },
    });
    return;
  }
  const notBefore = Math.max(row.notBefore, row.state === "pending" ? (row.dueAt ?? 0) : 0);
  run.countTime(Math.max(now, row.notBefore));
  becomePending(run, notBefore);
}

function react(run: Run, event: RunEvent): void {
  switch (event.kind) {
    case "go":
      activate(run);
      return;
    case "called":
      called(run, event.position, event.name, event.digest, event.args);
      return;
    case "classified":
      classified(run, event.position, event.as);
      return;
    case "callCancelled":
      callCancelled(run, event.position);
      return;
    case "logged":
      if (run.working) run.log(event.line);
      return;
    case "blocked":
      if (run.phase === "active" && run.pump.block(event)) run.blockedAt = run.now;
      return;
    case "ended":
      ended(run, event.end);
      return;
    case "refused":
      refused(run, event.end);
      return;
    case "outcome":
      outcome(run, event.position, event.outcome);
      return;
    case "recovered":
      recovered(run, event.position, event.recovery);
      return;
    case "committed":
      if (run.committed(event.token, event.results) && run.phase === "suspended") resumed(run);
      return;
    case "fenced":
      fence(run);
      return;
    case "alarm":
      return;
    case "signalled":
      run.signals.add(event.name);
      return;
    case "waitDone":
      waitDone(run, event.position, event.outcome);
      return;
    case "cancel":
      cancel(run, event);
      return;
    case "reconcile":
      reconcile(run, event.position, event.decision);
      return;
    case "contended":
      run.contended = event.others;
      return;
    case "drain":
      run.draining = true;
      return;
  }
}

/** A unit has made the suspended run pending; a signal that it hoped for may not have been there. */
function resumed(run: Run): void {
  if (somethingCame(run)) becomePending(run, 0);
  else park(run);
}

function activate(run: Run): void {
  passTime(run);
  if (run.phase !== "pending" || run.draining || run.needsReconcile) return;
  run.phase = "active";
  run.working = true;
  run.activatedAt = run.now;
  run.activations += 1;
  run.startedAt ??= run.now;
  run.pump.begin();
  const replayCpuMs = Math.ceil((2 * run.cpuUs) / 1_000) + replayCpuExtraMs;
  run.say({ kind: "activate", guestClockMs: run.row.guestStartMs, replayCpuMs });
  run.fingerprint ??= run.options.fingerprint;
  const { startedAt, activations, fingerprint } = run;
  run.step({
    build: (unit) => {
      if (run.phase === "closing") return;
      const patch = { status: null, reason: null, dueAt: null, startedAt, activations, fingerprint } as const;
      run.changeState(unit, "running", patch);
    },
    done: () => undefined,
  });
}

/** Gives the script what it may have now; what was held begins when the replay is over. */
function pumpOut(run: Run): void {
  if (run.phase !== "active") return;
  const { pump } = run;
  for (let delivery = pump.next(); delivery !== null; delivery = pump.next()) {
    const { guestClockMs } = delivery;
    if (delivery.kind === "timer") run.say({ kind: "fireTimer", guestClockMs });
    else {
      const { position, outcome } = delivery;
      run.say({ kind: "deliver", position, outcome, guestClockMs });
    }
  }
  if (pump.reachFrontier()) frontier(run);
  const divergence = pump.stuck();
  if (divergence !== null) diverge(run, divergence);
}

function frontier(run: Run): void {
  run.say({ kind: "frontier" });
  if (run.fingerprint !== run.options.fingerprint) adoptFingerprint(run);
  const held = [...run.open.values()].filter(({ stage }) => stage === "held");
  held.sort((one, other) => one.position - other.position);
  for (const call of held) classify(run, call);
  recoverOpen(run);
}

/** This engine has done all that the other one recorded. */
function adoptFingerprint(run: Run): void {
  const { fingerprint } = run.options;
  run.fingerprint = fingerprint;
  run.step({
    build: (unit) => unit.run({ fingerprint }),
    done: () => undefined,
  });
}

function rest(run: Run): void {
  if (run.rested || run.working) return;
  const state = run.phase;
  if (state === "suspended") {
    if (!run.quiet || somethingGoesOn(run)) return;
  } else if (state !== "finished" && state !== "fenced") {
    return;
  }
  run.rested = true;
  run.say({ kind: "rest", state });
}

/** Whether calls are carried out, or this process knows something of them that the store does not. */
function somethingGoesOn(run: Run): boolean {
  for (const call of run.open.values())
    if (inTransit(call) || call.stage === "dispatched" || call.notApplied) return true;
  return false;
}
