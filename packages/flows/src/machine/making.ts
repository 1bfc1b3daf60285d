/**
 * Calls from the script to their outcome: made, classified, recorded, carried out. An effect is begun only after its intent
 * was committed; what only reads is begun at once and recorded with its outcome.
 *
 * TRUST: names, digests and arguments are a script's. What a call may do was judged when it was classified.
 */

import type { OperationResult } from "@flowcell/journal";
import type { CallOutcome, EncodedValue } from "@flowcell/protocol";
import { type Call, changesWorld, madeCall } from "./call.js";
import { diverge } from "./ending.js";
import { failed } from "./outcomes.js";
import { classifiedAgain } from "./recovering.js";
import type { Run } from "./run.js";
import type { Classified } from "./types.js";
import type { DeliveryOf } from "./unit.js";
import { recordWait } from "./waits.js";

const gaveUp = "the script cancelled the call";

export function called(run: Run, position: number, name: string, digest: string, args: EncodedValue): void {
  if (run.phase !== "active") return;
  const found = run.pump.called(position, name, digest);
  if (typeof found === "object") {
    diverge(run, found);
    return;
  }
  if (found) return;
  const call = madeCall(position, name, digest, args, run.options.idempotencyKey(position), run.now);
  run.add(call);
  if (run.pump.atFrontier) classify(run, call);
}

/** Asks what a call of the script is that has no record. */
export function classify(run: Run, call: Call): void {
  call.stage = "classifying";
  call.purpose = "begin";
  // From here on it goes its way without the script, and a later activation has to make it as well.
  run.pump.know(call.position, call.name, call.digest);
  const { position, name, args } = call;
  run.say({ kind: "classify", position, name, args, withNote: !call.cancelled });
}

export function classified(run: Run, position: number, as: Classified): void {
  const call = run.calls.get(position);
  if (call?.stage !== "classifying") return;
  if (call.purpose === "begin") begin(run, call, as);
  else classifiedAgain(run, call, as);
}

function begin(run: Run, call: Call, as: Classified): void {
  switch (as.kind) {
    case "answered":
      call.effect = as.effect;
      run.settle(call, call.cancelled ? failed("cancelled", gaveUp) : as.outcome);
      return;
    case "wait":
      call.effect = "wait";
      call.wait = as.condition;
      call.callId = as.callId;
      break;
    case "effect":
      call.effect = as.effect;
      call.note = as.note;
      break;
    default:
      call.effect = as.kind;
  }
  if (call.cancelled) run.settle(call, failed("cancelled", gaveUp));
  else if (as.kind === "wait") recordWait(run, call);
  else if (as.kind === "local") recordLocal(run, call, as);
  else if (as.kind === "read") dispatch(run, call);
  else recordIntent(run, call);
}

function recordLocal(run: Run, call: Call, { operation, bytesMax }: Classified & { kind: "local" }): void {
  call.stage = "recording";
  call.attempts = 1;
  let delivery: DeliveryOf;
  run.step({
    build: (unit) => {
      if (call.stage !== "recording") return;
      run.record(unit, call);
      delivery = unit.local(call.position, operation, bytesMax);
    },
    done: (results) => run.delivered(call, delivery(outcomeIn(results))),
  });
}

function outcomeIn(results: readonly OperationResult[]): CallOutcome {
  const last = results.at(-1);
  if (last?.kind !== "outcome")
    throw new Error("machine: a local operation was committed without an outcome");
  return last.outcome;
}

function recordIntent(run: Run, call: Call): void {
  call.stage = "recording";
  call.attempts = 1;
  run.step({
    build: (unit) => {
      if (call.stage === "recording") run.record(unit, call);
    },
    done: () => intentRecorded(run, call),
  });
}

/** Commits that the effect of a recorded call is begun once more, then begins it. */
export function attemptAgain(run: Run, call: Call): void {
  call.stage = "recording";
  run.step({
    build: (unit) => {
      if (call.stage !== "recording") return;
      call.attempts += 1;
      unit.attempt(call.position);
    },
    done: () => intentRecorded(run, call),
  });
}

function intentRecorded(run: Run, call: Call): void {
  if (call.stage !== "recording") return;
  if (call.purpose === "repeat") dispatch(run, call);
  else if (run.phase === "closing")
    run.settle(call, failed("cancelled", "the call was not begun: the run had ended"));
  else if (call.cancelled) run.settle(call, failed("cancelled", gaveUp));
  else dispatch(run, call);
}

function dispatch(run: Run, call: Call): void {
  call.stage = "dispatched";
  call.notApplied = false;
  if (call.effect === "read") call.attempts = 1;
  run.say({ kind: "dispatch", position: call.position, idempotencyKey: call.idempotencyKey });
}

/** The host answered. */
export function outcome(run: Run, position: number, outcome: CallOutcome): void {
  const call = run.calls.get(position);
  if (call === undefined) {
    run.say({ kind: "quarantine", position, reason: "unknown_call", outcome });
  } else if (call.stage === "dispatched") {
    run.settle(call, call.purpose === "repeat" ? ofRepeated(outcome) : outcome);
  } else if (call.effect !== "read") {
    // A read that nobody waits for has changed nothing.
    run.quarantine(call, outcome);
  }
}

/**
 * An attempt before this one may have taken effect. Only what the other side says, which counts the key once, is about both;
 * an error of this attempt alone, that it could not be sent or was given up, does not say that nothing happened.
 */
function ofRepeated(outcome: CallOutcome): CallOutcome {
  if (outcome.ok) return outcome;
  const { code, message } = outcome.error;
  switch (code) {
    case "not_found":
    case "conflict":
    case "result_too_large":
    case "outcome_unknown":
    case "upstream":
      return outcome;
    case "denied":
    case "invalid_arguments":
    case "too_large":
    case "timeout":
    case "unavailable":
    case "limit":
    case "cancelled":
    case "io_error":
    case "internal":
      return failed(
        "outcome_unknown",
        `it was begun before a restart, and sending it again failed: ${message}`,
      );
  }
}

/** The script gave a call up. Its outcome is delivered all the same: the worker counts the call as open until then. */
export function callCancelled(run: Run, position: number): void {
  if (run.phase !== "active") return;
  const call = run.calls.get(position);
  if (call === undefined || call.cancelled) return;
  switch (call.stage) {
    case "waiting":
      call.cancelled = true;
      run.settle(call, failed("cancelled", gaveUp));
      return;
    case "dispatched":
      call.cancelled = true;
      run.say({ kind: "abort", position, why: gaveUp });
      if (changesWorld(call)) storeCancel(run, call);
      else run.settle(call, failed("cancelled", gaveUp));
      return;
    case "held":
    case "open":
    case "classifying":
    case "recording":
    case "taking":
    case "proving":
      call.cancelled = true;
      return;
    case "unknown":
    case "settling":
    case "done":
    case "dropped":
      return;
  }
}

function storeCancel(run: Run, call: Call): void {
  run.step({
    build: (unit) => {
      if (call.cancelStored) return;
      call.cancelStored = true;
      unit.cancelCall(call.position);
    },
    done: () => undefined,
  });
}
