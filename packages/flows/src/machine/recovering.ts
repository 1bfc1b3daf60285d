/**
 * Recorded calls without an outcome, which another process may have begun: when the replay is over, or when a run whose
 * script has ended is taken up. The table of packages/journal (`recoveryOf`) says what may be done; nothing here begins a
 * call of effect `once` again unless a proof or an operator says that it has not happened.
 */

import { recoveryOf } from "@flowcell/journal";
import type { CallOutcome, Recovery } from "@flowcell/protocol";
import { type Call, changesWorld } from "./call.js";
import { attemptAgain } from "./making.js";
import { failed } from "./outcomes.js";
import type { Run } from "./run.js";
import { park, suspend } from "./suspending.js";
import type { Classified, Decision } from "./types.js";

const notBegun = "the call was not begun: the run had ended";
const gaveUp = "the script cancelled the call, and it had not happened";

/** Takes up every call that nobody is at. */
export function recoverOpen(run: Run): void {
  const open = [...run.open.values()].filter(({ stage }) => stage === "open");
  open.sort((one, other) => one.position - other.position);
  for (const call of open) recover(run, call);
}

function recover(run: Run, call: Call): void {
  const { effect, attempts, cancelled, unknownReason } = call;
  if (effect === null) throw new Error(`machine: call ${call.position} is open and was never classified`);
  const { action } = recoveryOf({ effect, attempts, cancelled, unknownReason });
  if (call.notApplied || action === "again" || (action === "again_same_key" && attempts === 0))
    resume(run, call);
  else if (action === "again_same_key") classify(run, call, "repeat");
  else if (action === "prove") classify(run, call, "prove");
  else if (action === "cancelled") run.settle(call, failed("cancelled", gaveUp));
  else throw new Error(`machine: call ${call.position} is open, and the table says ${action}`);
}

/** It has not happened. */
function resume(run: Run, call: Call): void {
  if (run.phase === "closing") run.settle(call, failed("cancelled", notBegun));
  else if (call.cancelled) run.settle(call, failed("cancelled", gaveUp));
  else classify(run, call, "resume");
}

function classify(run: Run, call: Call, purpose: "resume" | "repeat" | "prove"): void {
  call.stage = "classifying";
  call.purpose = purpose;
  const { position, name, args } = call;
  run.say({ kind: "classify", position, name, args, withNote: false });
}

/** The engine has the arguments of a recorded call again, or says why it has not. */
export function classifiedAgain(run: Run, call: Call, as: Classified): void {
  const what = as.kind === "answered" && !as.outcome.ok ? as.outcome.error.message : `it is ${as.kind} now`;
  switch (call.purpose) {
    case "resume":
      if (as.kind === "effect") attemptAgain(run, call);
      else if (as.kind === "answered") run.settle(call, as.outcome);
      else run.settle(call, failed("unavailable", `${call.name} is not what it was when the call was made`));
      return;
    case "repeat":
      if (as.kind === "effect" && as.effect === "keyed") attemptAgain(run, call);
      else markUnknown(run, call, `it was begun and cannot be sent again: ${what}`);
      return;
    case "prove":
      if (as.kind === "effect") prove(run, call);
      else markUnknown(run, call, `it was begun and cannot be proven: ${what}`);
      return;
    case "begin":
      throw new Error(`machine: call ${call.position} is begun for the first time, and has a record`);
  }
}

function prove(run: Run, call: Call): void {
  call.stage = "proving";
  const { position, note, idempotencyKey } = call;
  run.say({ kind: "recover", position, note, idempotencyKey });
}

export function recovered(run: Run, position: number, recovery: Recovery): void {
  const call = run.calls.get(position);
  if (call?.stage !== "proving") return;
  switch (recovery.state) {
    case "applied":
      run.settle(call, recovery.outcome);
      return;
    case "not_applied":
      call.notApplied = true;
      call.purpose = "resume";
      if (run.phase === "closing") run.settle(call, failed("cancelled", notBegun));
      else if (call.cancelled) run.settle(call, failed("cancelled", gaveUp));
      else attemptAgain(run, call);
      return;
    case "unknown":
      markUnknown(run, call, "it was begun before a restart, and nothing tells whether it took effect");
      return;
  }
}

/** Only an operator can say what became of it; the run does not go on before. */
function markUnknown(run: Run, call: Call, reason: string): void {
  if (run.phase === "closing") {
    giveUp(run, call, reason);
    return;
  }
  call.stage = "unknown";
  call.unknownReason = reason;
  run.step({
    build: (unit) => {
      if (call.stage === "unknown") unit.unknown(call.position, reason);
    },
    done: () => undefined,
  });
  if (run.phase === "active") {
    const message = `the outcome of call ${call.position} of ${call.name} is unknown: ${reason}`;
    suspend(run, { status: "needs_reconcile", reason: "outcome_unknown", message });
  } else if (run.phase !== "suspending") {
    park(run);
  }
}

/** Records that nobody will ever know. */
export function giveUp(run: Run, call: Call, reason: string): void {
  run.settle(call, failed("outcome_unknown", `whether the call took effect is unknown: ${reason}`));
}

/** The run begins nothing any more; with `now`, neither does it wait for what goes on. */
export function giveUpOpen(run: Run, reason: string, now: boolean): void {
  for (const call of run.open.values()) {
    switch (call.stage) {
      case "dispatched":
        if (!now) break;
        run.say({ kind: "abort", position: call.position, why: reason });
        giveUp(run, call, reason);
        break;
      case "proving":
        if (now) giveUp(run, call, reason);
        break;
      case "open":
      case "classifying":
        if (changesWorld(call) && call.attempts > 0 && !call.notApplied) giveUp(run, call, reason);
        else run.settle(call, failed("cancelled", notBegun));
        break;
      case "recording":
        // A first intent that is on its way is answered when it has arrived: nothing was begun.
        if (call.purpose === "repeat") giveUp(run, call, reason);
        break;
      default:
    }
  }
}

/** An operator has spoken. Ignored for a call that is not asked about. */
export function reconcile(run: Run, position: number, decision: Decision): void {
  const call = run.calls.get(position);
  if (call?.stage !== "unknown") {
    if (decision.kind === "observed") contradict(run, call, position, decision.outcome);
    return;
  }
  call.unknownReason = null;
  if (decision.kind === "observed") {
    clearUnknown(run, call);
    run.settle(call, decision.outcome);
  } else {
    call.notApplied = true;
    clearUnknown(run, call);
    call.stage = "open";
  }
}

function contradict(run: Run, call: Call | undefined, position: number, outcome: CallOutcome): void {
  if (call !== undefined) run.quarantine(call, outcome);
  else run.say({ kind: "quarantine", position, reason: "unknown_call", outcome });
}

/** With the last of them, the run goes on. */
function clearUnknown(run: Run, call: Call): void {
  run.step({
    build: (unit) => {
      unit.unknown(call.position, null);
      unit.resumes = true;
    },
    done: () => undefined,
  });
}
