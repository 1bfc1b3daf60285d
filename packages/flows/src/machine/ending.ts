/**
 * How activations and runs end. The first end of a run stands. What the script began is waited for, so that nothing is lost
 * silently; what it did not begin is not begun any more. Nothing is delivered to a script after the end of its run.
 */

import type { Call } from "./call.js";
import { changesWorld } from "./call.js";
import { type Divergence, divergenceMessage, endOf } from "./divergence.js";
import { giveUp, giveUpOpen, recoverOpen } from "./recovering.js";
import type { End, Run } from "./run.js";
import { accounts, becomePending, park } from "./suspending.js";
import type { ActivationEnd, RunEvent } from "./types.js";

const backOffFirstMs = 1_000;
const backOffMostMs = 60_000;

type CancelEvent = RunEvent & { readonly kind: "cancel" };
type ErrorText = Pick<End, "result" | "errorJson" | "warningsJson" | "by">;

/** An error of the run itself, as callers get it. */
export function runError(code: string, name: string, message: string, more: object = {}): ErrorText {
  const errorJson = JSON.stringify({ code, name, message, ...more });
  return { errorJson, result: null, warningsJson: "[]", by: null };
}

/** The activation is over, whoever ended it. */
export function ended(run: Run, end: ActivationEnd): void {
  if (!run.working) throw new Error("machine: an activation ended that was not begun");
  run.working = false;
  run.consumed = run.pump.sent;
  run.cpuUs += end.liveCpuUs;
  run.heapPeakBytes = Math.max(run.heapPeakBytes, end.heapPeakBytes);
  run.confinementJson = end.confinementJson ?? run.confinementJson;
  for (const call of run.open.values()) if (call.stage === "held") run.forget(call);
  if (run.phase === "active") judge(run, end);
  else if (run.phase === "suspending") {
    run.failures = 0;
    run.refusals = 0;
    park(run);
  }
}

/** The version may not run: whatever was recorded, that is the end. */
export function refused(run: Run, end: ActivationEnd): void {
  if (!run.working) throw new Error("machine: an activation was refused that was not begun");
  run.working = false;
  run.consumed = run.pump.sent;
  if (run.phase === "active" || run.phase === "suspending") closeWith(run, end);
}

function judge(run: Run, end: ActivationEnd): void {
  const { status, reason } = end;
  switch (status) {
    case "completed":
    case "script_error":
    case "denied":
    case "budget_exceeded": {
      if (run.pump.atFrontier) {
        closeWith(run, end);
        return;
      }
      // The time that a replay takes is not the script's fault.
      if (status === "budget_exceeded" && (reason === "cpu" || reason === "wall")) {
        failed(run, end);
        return;
      }
      const divergence = run.pump.ended(endOf(status, reason, end.value));
      if (divergence === null) throw new Error("machine: before the frontier, with nothing missing");
      diverge(run, divergence);
      return;
    }
    case "violation":
    case "invalid_input":
    case "timed_out":
      closeWith(run, end);
      return;
    case "worker_lost":
    case "sandbox_unavailable":
    case "internal":
      failed(run, end);
      return;
    case "overloaded":
    case "cancelled":
      run.refusals += 1;
      tryAgain(run, run.refusals);
      return;
    case "suspended":
    case "needs_reconcile":
    case "replay_diverged":
    case "engine_mismatch":
      throw new Error(`machine: an activation ended as ${status} by itself`);
  }
}

function closeWith(run: Run, { status, reason, value, errorJson, warnings }: ActivationEnd): void {
  const warningsJson = JSON.stringify(warnings);
  close(run, { status, reason, result: value, errorJson, warningsJson, by: null }, "");
}

/** For no fault of the script: it is begun again, so and so often. */
function failed(run: Run, end: ActivationEnd): void {
  run.failures += 1;
  run.refusals = 0;
  if (run.failures > run.options.failuresMost) closeWith(run, end);
  else tryAgain(run, run.failures);
}

function tryAgain(run: Run, times: number): void {
  const backOff = Math.min(backOffMostMs, backOffFirstMs * 2 ** Math.min(times - 1, 16));
  const notBefore = run.now + backOff;
  run.phase = "pending";
  run.step({
    build: (unit) => {
      if (run.phase !== "pending" || run.needsReconcile) return;
      const patch = { status: null, reason: null, dueAt: notBefore, ...accounts(run) } as const;
      run.changeState(unit, "pending", patch);
    },
    done: () => {
      if (run.phase === "pending") becomePending(run, notBefore);
    },
  });
}

/** The script does something else than its journal says: it ends, and nothing more is begun for it. */
export function diverge(run: Run, divergence: Divergence): void {
  const message = divergenceMessage(divergence);
  if (run.fingerprint !== null && run.fingerprint !== run.options.fingerprint) {
    const text = `the engine is not the one that recorded this run, and behaves differently: ${message}`;
    const error = runError("fingerprint", "ReplayDiverged", text, divergence);
    close(run, { status: "engine_mismatch", reason: "fingerprint", ...error }, text);
  } else {
    const error = runError("call", "ReplayDiverged", message, divergence);
    close(run, { status: "replay_diverged", reason: "call", ...error }, message);
  }
}

export function cancel(run: Run, { by, reason }: CancelEvent): void {
  if (run.phase === "closing") {
    // Its end stands; but a version that may not run sends nothing again either.
    if (reason === "revoked") giveUpRecorded(run);
    return;
  }
  const error = runError(reason, "Cancelled", `the run was cancelled by ${by}`);
  close(run, { status: "cancelled", reason, ...error, by }, `cancelled by ${by}`);
}

/** Ends the run. What it began goes on to its end. */
export function close(run: Run, end: End, message: string): void {
  if (run.phase === "closing" || run.phase === "finished" || run.phase === "fenced") return;
  run.end = end;
  run.phase = "closing";
  if (run.working) {
    run.say({ kind: "endWorker", status: end.status, reason: end.reason ?? end.status, message });
  }
  letGo(run);
  if (run.working || !allSettled(run)) {
    run.stepFirst({
      build: (unit) => {
        const endOrder = unit.nextOrder;
        run.changeState(unit, "running", { status: null, dueAt: null, ...endPatch(end), endOrder });
      },
      done: () => undefined,
    });
  }
}

/** A run whose script had ended is taken up again. */
export function closeAgain(run: Run): void {
  const { endStatus, reason, result, errorJson, warningsJson, cancelRequestedBy } = run.row;
  if (endStatus === null) throw new Error("machine: the script ended in no way");
  run.end = { status: endStatus, reason, result, errorJson, warningsJson, by: cancelRequestedBy };
  run.phase = "closing";
  letGo(run);
}

function endPatch({ status, reason, result, errorJson, warningsJson, by }: End): object {
  return {
    endStatus: status,
    reason,
    result,
    errorJson,
    warningsJson,
    ...(by === null ? {} : { cancelRequestedBy: by }),
  };
}

/** Waits and reads are given up, what was not begun is dropped, what may have happened is looked after. */
function letGo(run: Run): void {
  for (const call of run.open.values()) {
    switch (call.stage) {
      case "held":
        run.forget(call);
        break;
      case "waiting":
      case "taking":
        run.drop(call);
        break;
      case "classifying":
        if (call.purpose === "begin") run.drop(call);
        break;
      case "recording":
        if (!call.recorded) run.drop(call);
        break;
      case "dispatched":
        if (!changesWorld(call)) giveUpRead(run, call);
        break;
      case "unknown":
        giveUp(run, call, call.unknownReason ?? "nobody could say");
        break;
      case "open":
        if (call.effect === "wait") run.drop(call);
        break;
      case "proving":
      case "settling":
      case "done":
      case "dropped":
        break;
    }
  }
  if (run.end?.status === "timed_out") expire(run);
  else if (beginsNothing(run)) giveUpRecorded(run);
  else recoverOpen(run);
}

function giveUpRead(run: Run, call: Call): void {
  run.drop(call);
  run.say({ kind: "abort", position: call.position, why: "the run has ended" });
}

/** Whether calls that another process began may not be sent again: the script, or its version, is not to be trusted with it. */
function beginsNothing({ end }: Run): boolean {
  if (end?.status === "replay_diverged" || end?.status === "engine_mismatch") return true;
  return end?.status === "cancelled" && end.reason === "revoked";
}

function giveUpRecorded(run: Run): void {
  giveUpOpen(run, "it was begun before a restart, and the run may begin nothing any more", false);
}

/** The deadline has passed: what is not known now will not be known. */
export function expire(run: Run): void {
  run.expired = true;
  giveUpOpen(run, "the run's deadline passed", true);
}

/** Finishes a run that has nothing left to wait for. */
export function complete(run: Run): void {
  const { end } = run;
  if (run.phase !== "closing" || end === null || run.working || !run.quiet || !allSettled(run)) return;
  run.step({
    build: (unit) => {
      const { status, reason, result, errorJson, warningsJson, by } = end;
      run.changeState(unit, "finished", {
        status,
        reason,
        result,
        errorJson,
        warningsJson,
        finishedAt: unit.now,
        dueAt: null,
        ...accounts(run),
        ...(by === null ? {} : { cancelRequestedBy: by }),
      });
    },
    done: () => {
      run.phase = "finished";
    },
  });
}

function allSettled(run: Run): boolean {
  return run.open.size === 0;
}

/** Somebody else holds the run: everything stops, and nothing more is written. */
export function fence(run: Run): void {
  if (run.phase === "fenced") return;
  run.phase = "fenced";
  run.forgetSteps();
  const message = "another process has taken the run";
  if (run.working) run.say({ kind: "endWorker", status: "cancelled", reason: "closing", message });
  for (const { stage, position } of run.open.values())
    if (stage === "dispatched") run.say({ kind: "abort", position, why: message });
}
