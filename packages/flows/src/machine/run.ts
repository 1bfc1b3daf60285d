/**
 * What the machine of a run knows, and the ways in which all its phases change it: commands go out by `say`, changes of the
 * store by `step`. The phases are functions over this object: making.ts, waits.ts, recovering.ts, time.ts, ending.ts.
 *
 * Kept true here:
 *   - at most one unit of the run is on its way; what comes meanwhile is gathered into the next, so deliveries are numbered
 *     in the order in which they reach the store, and what a unit was built on has happened;
 *   - the pump gets a delivery only after its commit;
 *   - a suspended run whose unit delivers something becomes pending by that very unit: no outcome is left lying;
 *   - nothing is committed after `fenced`.
 */

import type { Delivery, LogRow, OperationResult, RunPatch, RunRow, RunState } from "@flowcell/journal";
import type { CallOutcome, EncodedValue, Status } from "@flowcell/protocol";
import { type Call, recordedCall, rowOf } from "./call.js";
import { sameOutcome } from "./outcomes.js";
import { Pump } from "./pump.js";
import { Recorded } from "./recorded.js";
import type { LogLine, MachineOptions, RunCommand } from "./types.js";
import { type Counters, type Step, UnitBuilder } from "./unit.js";

export type Phase =
  /** Wants a worker. */
  | "pending"
  | "active"
  /** The worker is being ended, so that the run can be suspended. */
  | "suspending"
  | "suspended"
  /** The script is over; what it began is waited for. */
  | "closing"
  | "finished"
  | "fenced";

/** How a run ends. */
export interface End {
  readonly status: Status;
  readonly reason: string | null;
  readonly result: EncodedValue | null;
  readonly errorJson: string | null;
  readonly warningsJson: string;
  /** Who cancelled. */
  readonly by: string | null;
}

/** What is left of the arguments of a call that is done: they may be large, and the store has them. */
const noArguments: EncodedValue = Object.freeze({ text: "[]", devalue: false, attachments: [] });

interface Flying {
  readonly token: number;
  readonly steps: readonly { readonly step: Step; readonly from: number; readonly to: number }[];
  /** The unit makes a suspended run pending. */
  readonly wakes: boolean;
}

export class Run {
  /** Without the history: most of it is wanted no more. */
  readonly options: Omit<MachineOptions, "history">;
  readonly row: RunRow;
  /** All that are known, by position. */
  readonly calls = new Map<number, Call>();
  /** Those of them that are not done: few, where a run may have made ten thousand. */
  readonly open = new Map<number, Call>();
  readonly pump = new Pump();
  readonly recorded = new Recorded();

  phase: Phase = "pending";
  /** Of the event that is handled. */
  now = 0;
  /** Whether an activation was begun and has not ended. */
  working = false;
  draining = false;
  /** Whether other runs wait for a worker. */
  contended = false;
  end: End | null = null;
  /** The deadline has passed: nothing is waited for any more. */
  expired = false;

  /** As the last built unit leaves it. */
  stored: RunState;
  fingerprint: string | null;
  startedAt: number | null;
  activations: number;
  failures: number;
  cpuUs: number;
  heapPeakBytes: number;
  confinementJson: string | null;
  /** Activations in a row for which there was no worker. */
  refusals = 0;

  /** When this activation began, and since when its script waits. */
  activatedAt = 0;
  blockedAt = 0;
  /** Whether it was said that nothing is going on. */
  rested = false;
  /** How many deliveries the script had taken when it was last suspended. */
  consumed: number;
  /** When a timer of the suspended script, or what else it was suspended for, is due. */
  restDueAt: number | null;
  /** Names of signals that may be there to be taken. */
  readonly signals = new Set<string>();

  /** Of the last delivery; where it starts before the first. */
  #guestClockMs: number;
  /** How far that is ahead of this clock, which may have been set back: the guest's timers go by its own. */
  #aheadMs = 0;
  #activeMs: number;
  #activeSince: number | null = null;
  readonly #counters: Counters;
  readonly #steps: Step[] = [];
  #flying: Flying | null = null;
  #nextToken = 1;
  #logs: LogRow[] = [];
  #nextLog: number;
  #commands: RunCommand[] = [];

  constructor({ history, ...options }: MachineOptions) {
    const { run: row, calls, deliveries } = history;
    this.options = options;
    this.row = row;
    this.stored = row.state;
    this.fingerprint = row.fingerprint;
    this.startedAt = row.startedAt;
    this.activations = row.activations;
    this.failures = row.failures;
    this.cpuUs = row.cpuUs;
    this.heapPeakBytes = row.heapPeakBytes;
    this.confinementJson = row.confinementJson;
    this.consumed = row.state === "suspended" ? row.nextOrder : 0;
    this.restDueAt = row.state === "suspended" ? row.dueAt : null;
    this.#guestClockMs = row.guestStartMs;
    this.#counters = { nextOrder: row.nextOrder, guestClockMs: row.guestClockMs };
    this.#nextLog = row.nextLog;

    const outcomes = new Map<number, CallOutcome>();
    for (const delivery of deliveries)
      if (delivery.kind === "call") outcomes.set(delivery.position, delivery.outcome);
    // When the run was last seen to do something: time in which no process had it is not its own.
    let lastSeen = row.changedAt;
    for (const call of calls) {
      this.add(recordedCall(call, outcomes.get(call.position) ?? null));
      this.pump.know(call.position, call.name, call.digest);
      this.recorded.call(call);
      lastSeen = Math.max(lastSeen, call.madeAt);
    }
    for (const delivery of deliveries) {
      this.give(delivery);
      lastSeen = Math.max(lastSeen, delivery.at);
    }
    this.#activeMs = row.activeMs + (row.state === "suspended" ? 0 : lastSeen - row.changedAt);
  }

  // ------------------------------------------------------------------------------------------------------------ commands

  say(command: RunCommand): void {
    if (command.kind === "commit") this.rested = false;
    this.#commands.push(command);
  }

  take(): readonly RunCommand[] {
    const commands = this.#commands;
    this.#commands = [];
    return commands;
  }

  /** Asks for a worker, unless none may be begun. */
  wake(notBefore: number): void {
    if (!this.draining) this.say({ kind: "wake", notBefore });
  }

  // ---------------------------------------------------------------------------------------------------------------- time

  /** What waits and timers go by: the guest's clock alone when time is virtual. */
  get time(): number {
    return this.options.virtualTime ? this.#counters.guestClockMs : this.now;
  }

  /** What the clock says when the run is taken up, after what it said when the run was last seen. */
  firstClock(now: number): void {
    const { state, changedAt, startedAt } = this.row;
    // Only of a suspended run is it known that nothing was recorded since it changed.
    if (state === "suspended") this.#setBackTo(changedAt);
    else if (this.#counters.nextOrder === 0 && startedAt !== null) this.#setBackTo(startedAt);
    if (state === "suspended" && this.restDueAt !== null) this.restDueAt -= Math.max(0, changedAt - now);
    this.#setBackTo(now);
    this.now = now;
  }

  /** Whether the clock was set back since it was last looked at: what goes by it is counted from here on. */
  readClock(now: number): boolean {
    const back = this.now - now;
    this.now = now;
    if (back <= 0) return false;
    this.#setBackTo(now);
    if (this.restDueAt !== null && !this.options.virtualTime) this.restDueAt -= back;
    if (this.#activeSince !== null) this.#activeSince -= back;
    this.activatedAt -= back;
    this.blockedAt -= back;
    return true;
  }

  /** The clock said so after all that is recorded: where it is behind that, what was to come waits no longer than it was to. */
  #setBackTo(reading: number): void {
    if (this.options.virtualTime) return;
    this.#aheadMs = Math.max(this.#aheadMs, this.#guestClockMs - reading);
    for (const call of this.open.values()) call.behindMs = Math.max(call.behindMs, call.madeAt - reading);
  }

  /** When the timer of a script that waits is due by this clock. */
  get timerDueAt(): number | null {
    const nextTimerAt = this.pump.blocked?.nextTimerAt ?? null;
    return nextTimerAt === null ? null : nextTimerAt - this.#aheadMs;
  }

  get nextOrder(): number {
    return this.#counters.nextOrder;
  }

  /** Its unsuspended time begins to count. */
  countTime(from: number): void {
    this.#activeSince = from;
  }

  get activeMs(): number {
    return this.#activeMs + (this.#activeSince === null ? 0 : Math.max(0, this.now - this.#activeSince));
  }

  /** When the deadline passes; null while the run is suspended. */
  get deadlineAt(): number | null {
    if (this.#activeSince === null) return null;
    return this.#activeSince + Math.max(0, this.row.deadlineMs - this.#activeMs);
  }

  // --------------------------------------------------------------------------------------------------------------- calls

  add(call: Call): void {
    this.calls.set(call.position, call);
    if (call.stage !== "done") this.open.set(call.position, call);
  }

  /** Nothing becomes of it any more. */
  drop(call: Call): void {
    call.stage = "dropped";
    this.open.delete(call.position);
  }

  /** One that was never begun. */
  forget({ position }: Call): void {
    this.calls.delete(position);
    this.open.delete(position);
  }

  // --------------------------------------------------------------------------------------------------------------- steps

  step(step: Step): void {
    this.#steps.push(step);
  }

  /** Before everything that is not built yet. */
  stepFirst(step: Step): void {
    this.#steps.unshift(step);
  }

  /** Whether nothing is on its way to the store. */
  get quiet(): boolean {
    return this.#flying === null && this.#steps.length === 0;
  }

  /** Records an outcome and delivers it, with the call's row when there is none. */
  settle(call: Call, outcome: CallOutcome, notBefore = 0): void {
    call.stage = "settling";
    call.outcome = outcome;
    let delivery: Delivery;
    this.step({
      build: (unit) => {
        this.record(unit, call);
        if (call.cancelled && !call.cancelStored) {
          unit.cancelCall(call.position);
          call.cancelStored = true;
        }
        delivery = unit.deliver(call.position, outcome, notBefore);
      },
      done: () => this.delivered(call, delivery),
    });
  }

  /** Puts the call's row into the unit, once. */
  record(unit: UnitBuilder, call: Call): void {
    if (call.recorded) return;
    call.recorded = true;
    const row = rowOf(call);
    this.recorded.call(row);
    unit.call(row, call.attempts);
  }

  delivered(call: Call, delivery: Delivery): void {
    call.stage = "done";
    call.args = noArguments;
    this.open.delete(call.position);
    if (delivery.kind === "call") call.outcome = delivery.outcome;
    this.pump.know(call.position, call.name, call.digest);
    this.give(delivery);
  }

  /** A delivery that is committed. */
  give(delivery: Delivery): void {
    this.pump.add(delivery);
    this.recorded.delivery(delivery);
    this.#guestClockMs = delivery.guestClockMs;
    this.#aheadMs = this.options.virtualTime ? 0 : Math.max(0, delivery.guestClockMs - delivery.at);
  }

  /** An outcome that nobody waits for: kept where an operator can find it, unless it is the one that was recorded. */
  quarantine(call: Call, outcome: CallOutcome): void {
    const recorded = call.outcome;
    if (recorded !== null && sameOutcome(recorded, outcome)) return;
    const reason = this.phase === "finished" || recorded === null ? "late" : "contradictory";
    this.say({ kind: "quarantine", position: call.position, reason, outcome });
  }

  /** Puts a change of state into a unit, with the time that passed. */
  changeState(unit: UnitBuilder, state: RunState, patch: RunPatch): void {
    const { now } = unit;
    this.#activeMs += this.#activeSince === null ? 0 : Math.max(0, now - this.#activeSince);
    this.#activeSince = state === "pending" || state === "running" ? now : null;
    this.stored = state;
    unit.run({ ...patch, state, activeMs: this.#activeMs, changedAt: now });
  }

  // --------------------------------------------------------------------------------------------------------------- units

  log({ seq, level, guestTimeMs, text }: LogLine): void {
    if (seq < this.#nextLog) return;
    if (seq > this.#nextLog)
      throw new Error(`machine: line ${seq} of the log came after ${this.#nextLog} others`);
    this.#nextLog += 1;
    this.#logs.push({ seq, level, guestTimeMs, text });
  }

  /**
   * Hands the next unit over, if there is anything to change and nothing on its way. True when nothing of what was to change
   * is wanted any more: there is no unit whose end would bring the run on.
   */
  flush(): boolean {
    if (this.#flying !== null || this.#steps.length === 0 || this.phase === "fenced") return false;
    const unit = new UnitBuilder(this.#counters, this.now, this.options.virtualTime);
    const logs = this.#logs.length > 0;
    if (logs) unit.operations.push({ kind: "logs", lines: this.#logs });
    const steps: { step: Step; from: number; to: number }[] = [];
    while (!unit.closed) {
      const step = this.#steps.shift();
      if (step === undefined) break;
      const from = unit.operations.length;
      step.build(unit);
      if (unit.operations.length > from) steps.push({ step, from, to: unit.operations.length });
    }
    if (steps.length === 0) return true;
    if (logs) this.#logs = [];
    const wakes = unit.resumes && this.stored === "suspended" && !this.needsReconcile;
    if (wakes) this.changeState(unit, "pending", { status: null, reason: null, dueAt: null });
    const token = this.#nextToken++;
    this.#flying = { token, steps, wakes };
    this.say({ kind: "commit", token, operations: unit.operations });
    return false;
  }

  /** Returns whether the unit made a suspended run pending. */
  committed(token: number, results: readonly OperationResult[]): boolean {
    const flying = this.#flying;
    if (flying?.token !== token)
      throw new Error(`machine: commit ${token} was acknowledged, which is not on its way`);
    this.#flying = null;
    for (const { step, from, to } of flying.steps) step.done(results.slice(from, to));
    return flying.wakes;
  }

  forgetSteps(): void {
    this.#steps.length = 0;
    this.#flying = null;
  }

  get needsReconcile(): boolean {
    for (const call of this.open.values()) if (call.stage === "unknown") return true;
    return false;
  }
}
