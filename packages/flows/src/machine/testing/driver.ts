/**
 * Drives a machine through a script of events in a test, and writes what it says as short text: one line for each command,
 * times counted from the run's start. Commits are acknowledged when the script says so.
 */

import type { OperationResult, RunHistory, RunOperation } from "@flowcell/journal";
import type { CallOutcome, EncodedValue } from "@flowcell/protocol";
import { RunMachine } from "../machine.js";
import type { ActivationEnd, Classified, MachineOptions, RunCommand, RunEvent } from "../types.js";
import { end, history, ok, options, startMs, value } from "./histories.js";

type Commit = RunCommand & { readonly kind: "commit" };

const done: OperationResult = { kind: "done" };

export class Driver {
  readonly machine: RunMachine;
  now = startMs;
  /** Commands as they came; alarms are kept apart. */
  said: readonly RunCommand[] = [];
  alarm: number | null = null;
  pending: Commit | null = null;
  /** By which the next commit is answered with another outcome or signal. */
  local: CallOutcome = ok("local");
  signal: EncodedValue | null = null;

  constructor(of: RunHistory = history(), over: Partial<MachineOptions> = {}) {
    this.machine = new RunMachine(options(of, over));
  }

  at(ms: number): this {
    this.now = startMs + ms;
    return this;
  }

  start(): readonly string[] {
    return this.#take(this.machine.start(this.now));
  }

  send(event: RunEvent): readonly string[] {
    return this.#take(this.machine.handle(event, this.now));
  }

  /** The unit that is on its way is in the store. */
  ack(): readonly string[] {
    const { pending } = this;
    if (pending === null) throw new Error("no commit is on its way");
    this.pending = null;
    const results = pending.operations.map((operation) => this.#result(operation));
    return this.send({ kind: "committed", token: pending.token, results });
  }

  /** Acknowledges until nothing is on its way; what was said meanwhile. */
  settle(): readonly string[] {
    const all: string[] = [];
    while (this.pending !== null) all.push(...this.ack());
    return all;
  }

  /** Starts, and begins the first activation. */
  begin(): readonly string[] {
    const said = [...this.start(), ...this.settle(), ...this.send({ kind: "go" })];
    return [...said, ...this.settle()];
  }

  call(position: number, name = "call", digest = `digest ${position}`): readonly string[] {
    return this.send({ kind: "called", position, name, digest, args: value([position]) });
  }

  is(position: number, as: Classified): readonly string[] {
    return this.send({ kind: "classified", position, as });
  }

  /** A call that is made, classified and recorded. */
  made(position: number, as: Classified, name?: string): readonly string[] {
    return [...this.call(position, name), ...this.is(position, as), ...this.settle()];
  }

  blocked(nextTimerAt: number | null, openCalls: number): readonly string[] {
    const at = nextTimerAt === null ? null : startMs + nextTimerAt;
    return this.send({ kind: "blocked", nextTimerAt: at, openCalls });
  }

  ended(status: ActivationEnd["status"], over: Partial<ActivationEnd> = {}): readonly string[] {
    return this.send({ kind: "ended", end: end(status, over) });
  }

  outcome(position: number, outcome: CallOutcome = ok(position)): readonly string[] {
    return this.send({ kind: "outcome", position, outcome });
  }

  #take(commands: readonly RunCommand[]): readonly string[] {
    this.said = commands;
    const lines: string[] = [];
    for (const command of commands) {
      if (command.kind === "alarm") this.alarm = command.at === null ? null : command.at - startMs;
      else lines.push(brief(command));
      if (command.kind !== "commit") continue;
      if (this.pending !== null) throw new Error("two commits are on their way");
      this.pending = command;
    }
    return lines;
  }

  #result(operation: RunOperation): OperationResult {
    if (operation.kind === "local") return { kind: "outcome", outcome: this.local };
    if (operation.kind !== "takeSignal") return done;
    const { signal } = this;
    this.signal = null;
    return { kind: "signal", value: signal };
  }
}

export const keyed: Classified = { kind: "effect", effect: "keyed", note: null };
export const once: Classified = { kind: "effect", effect: "once", note: { size: 1 } };
export const read: Classified = { kind: "read" };
export const kv: Classified = { kind: "local", operation: { kind: "kv.get", key: "k" }, bytesMax: 100 };

export function sleepFor(waitMs: number): Classified {
  return { kind: "wait", condition: { kind: "time", waitMs }, callId: null };
}

export function signalOf(name: string, timeoutMs: number | null = null): Classified {
  return { kind: "wait", condition: { kind: "signal", name, timeoutMs }, callId: null };
}

export const approval: Classified = {
  kind: "wait",
  condition: { kind: "approval", title: "?", detail: null, timeoutMs: null },
  callId: "call_1",
};

function ms(at: number): string {
  return `+${at - startMs}`;
}

function outcomeText(outcome: CallOutcome): string {
  return outcome.ok ? outcome.value.text : outcome.error.code;
}

function brief(command: Exclude<RunCommand, { readonly kind: "alarm" }>): string {
  switch (command.kind) {
    case "wake":
      return command.notBefore <= startMs ? "wake" : `wake ${ms(command.notBefore)}`;
    case "activate":
      return `activate ${ms(command.guestClockMs)}, replay ${command.replayCpuMs} ms`;
    case "frontier":
      return "frontier";
    case "deliver":
      return `deliver ${command.position} ${outcomeText(command.outcome)} ${ms(command.guestClockMs)}`;
    case "fireTimer":
      return `fireTimer ${ms(command.guestClockMs)}`;
    case "endWorker":
      return `endWorker ${command.status}/${command.reason}`;
    case "classify":
      return `classify ${command.position}${command.withNote ? "" : " without note"}`;
    case "dispatch":
      return `dispatch ${command.position} ${command.idempotencyKey}`;
    case "abort":
      return `abort ${command.position}`;
    case "recover":
      return `recover ${command.position} ${JSON.stringify(command.note)}`;
    case "commit":
      return `commit ${command.operations.map(briefOperation).join("; ")}`;
    case "quarantine":
      return `quarantine ${command.position} ${command.reason}`;
    case "rest":
      return `rest ${command.state}`;
  }
}

function briefOperation(operation: RunOperation): string {
  switch (operation.kind) {
    case "call":
      return `call ${operation.call.position} ${operation.call.effect} x${operation.attempts}`;
    case "attempt":
    case "cancelCall":
      return `${operation.kind} ${operation.position}`;
    case "unknown":
      return `${operation.reason === null ? "known" : "unknown"} ${operation.position}`;
    case "deliver":
      return `#${operation.order} ${ms(operation.guestClockMs)} ${operation.position}=${outcomeText(operation.outcome)}`;
    case "timer":
      return `#${operation.order} ${ms(operation.guestClockMs)} timer`;
    case "local":
      return `#${operation.order} ${operation.position}=${operation.operation.kind}`;
    case "takeSignal":
      return `#${operation.order} ${operation.position}=signal ${operation.name}`;
    case "logs":
      return `logs ${operation.lines.map(({ seq }) => seq).join(",")}`;
    case "run":
      return briefPatch(operation.patch);
  }
}

function briefPatch(patch: (RunOperation & { readonly kind: "run" })["patch"]): string {
  const { state, status, reason, dueAt, endOrder, endStatus, failures, fingerprint } = patch;
  const words = ["run"];
  if (state !== undefined) words.push(state);
  if (typeof status === "string") words.push(`${status}/${reason ?? "-"}`);
  if (typeof endOrder === "number") words.push(`ends ${endStatus}/${reason ?? "-"} at ${endOrder}`);
  if (typeof dueAt === "number") words.push(`due ${ms(dueAt)}`);
  if (typeof failures === "number" && failures > 0) words.push(`failures ${failures}`);
  if (state === undefined && typeof fingerprint === "string") words.push(`by ${fingerprint}`);
  return words.join(" ");
}
