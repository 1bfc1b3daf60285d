/** What must hold of a simulated run that has ended; see simulation.ts. */

import type { CallRow, LogRow, RunHistory } from "@flowcell/journal";
import type { CallOutcome } from "@flowcell/protocol";
import { sameOutcome } from "../outcomes.js";
import { HistoryVerifier, type VerifyEvent } from "../verify.js";
import { activationEnd } from "./cell.js";
import { Guest, type GuestMessage } from "./guest.js";
import { Broken } from "./record.js";
import { failuresMost, type Story } from "./stage.js";
import type { Deed } from "./world.js";

export function checkEnd(
  story: Story,
  history: RunHistory,
  logs: readonly LogRow[],
  deeds: ReadonlyMap<number, Deed>,
): void {
  const { run } = history;
  if (run.state !== "finished") throw new Broken(`the run is left ${run.state} (${run.status})`);
  checkCause(story, history);
  const outcomes = new Map<number, CallOutcome>();
  for (const delivery of history.deliveries)
    if (delivery.kind === "call") outcomes.set(delivery.position, delivery.outcome);
  for (const deed of deeds.values()) checkDeed(deed, history, outcomes.get(deed.position), story);
  for (const call of history.calls) checkCall(call, outcomes.get(call.position), deeds);
  if (!story.drifts) checkReplay(story, history, logs);
}

/** An end that an uncut run could not have had needs a reason. */
function checkCause(
  {
    cancelled,
    failures,
    deadlineMs,
    startMs,
    endedAt,
    drifts,
    crashes,
    recordedBytesMost,
    timersMost,
  }: Story,
  { run, deliveries }: RunHistory,
): void {
  const { status, reason } = run;
  switch (status) {
    case "completed":
    case "script_error":
      return;
    case "cancelled":
      if (!cancelled) throw new Broken("nobody cancelled the run");
      return;
    case "timed_out":
      if (endedAt - startMs < deadlineMs) throw new Broken("the deadline had not passed");
      return;
    case "budget_exceeded": {
      const timers = deliveries.filter(({ kind }) => kind === "timer").length;
      if (reason !== "record_size" || (recordedBytesMost > 1e6 && timers <= timersMost))
        throw new Broken(`the run ended as ${status}/${reason} without a reason`);
      return;
    }
    case "worker_lost":
    case "sandbox_unavailable":
      if (failures <= failuresMost) throw new Broken(`the run ended as ${status} after ${failures} failures`);
      return;
    case "replay_diverged":
    case "engine_mismatch":
      if (!drifts || crashes === 0)
        throw new Broken(`a replay that was exact is said to differ: ${run.errorJson}`);
      return;
    default:
      throw new Broken(`the run ended as ${status}/${reason}`);
  }
}

/** What took effect is on record. */
function checkDeed(
  { position, name, applied, outcome }: Deed,
  { calls }: RunHistory,
  recorded: CallOutcome | undefined,
  { crashes, cancelled, deadlineMs }: Story,
): void {
  const what = `call ${position} (${name})`;
  if (applied !== 1) throw new Broken(`${what} took effect ${applied} times`);
  const row = calls.find((call) => call.position === position);
  if (row === undefined || row.attempts === 0) throw new Broken(`${what} took effect and has no intent`);
  if (recorded === undefined || outcome === null) throw new Broken(`${what} took effect and has no outcome`);
  if (sameOutcome(recorded, outcome)) return;
  if (recorded.ok || recorded.error.code !== "outcome_unknown")
    throw new Broken(`${what} took effect and is on record as something else`);
  if (crashes === 0 && !cancelled && deadlineMs > 1e9)
    throw new Broken(`${what} is said to be unknown without a reason`);
}

function checkCall(
  { position, name, effect, attempts }: CallRow,
  recorded: CallOutcome | undefined,
  deeds: ReadonlyMap<number, Deed>,
): void {
  if ((effect !== "keyed" && effect !== "once") || attempts === 0) return;
  if (recorded === undefined) throw new Broken(`call ${position} (${name}) was begun and is lost`);
  if (recorded.ok && !deeds.has(position))
    throw new Broken(`call ${position} (${name}) is on record and was not done`);
}

/** A new guest that is given the record. */
function checkReplay(
  { program, guestSeed, inFlight }: Story,
  history: RunHistory,
  logs: readonly LogRow[],
): void {
  const verifier = new HistoryVerifier(history);
  const lines: string[] = [];
  const messages: GuestMessage[] = [];
  const guest = new Guest(program, guestSeed, inFlight, history.run.guestStartMs, (message) =>
    messages.push(message),
  );
  const give = (commands: ReturnType<HistoryVerifier["start"]>): void => {
    for (const command of commands) {
      if (command.kind === "deliver") guest.deliver(command.position, command.outcome, command.guestClockMs);
      else if (command.kind === "fireTimer") guest.fireTimer(command.guestClockMs);
    }
  };
  guest.start();
  give(verifier.start());
  for (let message = messages.shift(); message !== undefined; message = messages.shift()) {
    if (message.kind === "logged") lines.push(message.text);
    const event = verifyEvent(message);
    if (event !== null) give(verifier.handle(event));
  }
  const { finding } = verifier;
  if (finding === null) throw new Broken("the replay came to nothing");
  if (finding.divergence !== null)
    throw new Broken(`the record does not replay: ${JSON.stringify(finding.divergence)}`);
  const all = history.run.status === "completed" || history.run.status === "script_error";
  if (all && logs.length !== lines.length)
    throw new Broken(`${logs.length} of ${lines.length} lines are stored`);
  for (const { seq, text } of logs)
    if (lines[seq] !== undefined && lines[seq] !== text)
      throw new Broken(`line ${seq} of the log is another one`);
}

function verifyEvent(message: GuestMessage): VerifyEvent | null {
  switch (message.kind) {
    case "called":
    case "blocked":
      return message;
    case "returned":
      return { kind: "ended", end: activationEnd("completed", null, message.value) };
    case "threw":
      return { kind: "ended", end: activationEnd("script_error", message.reason) };
    case "callCancelled":
    case "logged":
      return null;
  }
}
