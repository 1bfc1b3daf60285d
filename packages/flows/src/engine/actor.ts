/**
 * One run, driven: its machine, and what carries the machine's commands out (journal.ts, workplace.ts, calls.ts). Made by the
 * runner for a run that is adopted or wakes up; over when the run rests, finishes or is taken by somebody else.
 *
 * It handles one event at a time, in the order in which they came; commands of an event are carried out in order before the
 * next. It decides nothing: what follows from an event is the machine's.
 *
 * Kept true: nothing is done for a run that was not claimed, nor after `stop`; what throws here is a bug, which ends this run
 * as internal and no other.
 */

import type { RunHistory, RunOperation, RunPatch, RunRow, UnitResult } from "@flowcell/journal";
import { type CallOutcome, type Effect, profileLimits, type WaitCondition } from "@flowcell/protocol";
import { RunMachine } from "../machine/machine.js";
import type { RunCommand, RunEvent } from "../machine/types.js";
import type { Gate, Runnable } from "../ports.js";
import { Alarm } from "./alarms.js";
import { CallTarget, RunCalls } from "./calls.js";
import type { EngineContext } from "./context.js";
import { RunJournal } from "./journal.js";
import { Workplace } from "./workplace.js";

/** That came before the machine was there, or in the course of one event. More is a bug: calls in flight are bounded. */
const eventsMost = 65_536;

type CallEvent = RunEvent & { readonly kind: "classified" | "outcome" | "recovered" };

export class Actor {
  readonly runId: string;
  readonly #context: EngineContext;
  readonly #journal: RunJournal;
  readonly #work: Workplace;
  readonly #calls: RunCalls;

  #history: RunHistory | null = null;
  #machine: RunMachine | null = null;
  /** With what was committed since. */
  #run: RunRow | null = null;
  #stopped = false;
  /** Something from outside wants it to be looked at, although nothing of its own may be due. */
  #wanted = false;

  readonly #events: RunEvent[] = [];
  #handling = false;
  #resting: "suspended" | "finished" | "fenced" | null = null;

  /** For when the machine asked to be told of the time. */
  #alarmAt: number | null = null;
  readonly #machineAlarm = new Alarm(() => {
    this.#alarmAt = null;
    this.post({ kind: "alarm" });
  });
  readonly #loadAlarm = new Alarm(() => void this.load());
  /** Said when the run was taken up: good for an activation in that very turn. */
  #gate: Gate | null = null;
  #aimed = false;

  /** `generation`: of a run that this runner has claimed before. */
  constructor(context: EngineContext, runId: string, generation: number | null) {
    this.#context = context;
    this.runId = runId;
    this.#journal = new RunJournal(context, runId, generation, {
      committed: (token, operations, result) => this.#committed(token, operations, result),
      bug: (error) => this.#bug(error),
    });
    this.#work = new Workplace(context, {
      post: (event) => void this.post(event),
      aim: (runnable) => this.#aim(runnable),
      own: (promise) => this.#journal.own(promise),
      bug: (error) => this.#bug(error),
    });
    this.#calls = new RunCalls(runId, {
      keyOf: (position) => this.#keyOf(position),
      post: (event) => this.#answered(event),
      runOf: (other) => context.store.run(other),
      own: (promise) => this.#journal.own(promise),
    });
  }

  /** Whether it has taken the run up. */
  get loaded(): boolean {
    return this.#machine !== null;
  }

  /** Nothing is on its way that would be lost by stopping. */
  get quiet(): boolean {
    if (this.#stopped) return true;
    return this.loaded && this.#work.idle && this.#calls.running === 0 && this.#journal.flying === 0;
  }

  // -------------------------------------------------------------------------------------------------------------- beginning

  /** Claims the run if it is not this runner's yet, and makes its machine. */
  load(): Promise<void> {
    const loaded = this.#load();
    this.#journal.own(loaded);
    // What it rejects with is the owner's.
    return loaded.then(
      () => this.#context.changed(),
      () => this.#context.changed(),
    );
  }

  async #load(): Promise<void> {
    this.#history ??= await this.#journal.take();
    const history = this.#history;
    if (this.#stopped) return;
    if (history === null) {
      this.#lost();
      return;
    }
    if (this.#maySleepOn(history)) {
      this.#sleep(history.run.dueAt);
      return;
    }
    const gate = await this.#context.hooks.gate(history.run);
    if (this.#stopped) return;
    if (!gate.ok && "retryAt" in gate) this.#context.alarms.set(this.#loadAlarm, gate.retryAt);
    else this.#begin(history, gate);
  }

  /** A suspended run that only time or somebody can wake, and neither has. */
  #maySleepOn({ run, calls, deliveries }: RunHistory): boolean {
    if (this.#wanted || this.#context.settings.virtualTime) return false;
    if (run.state !== "suspended" || run.endOrder !== null || run.cancelRequestedBy !== null) return false;
    if (run.status === "needs_reconcile") return true;
    // The clock was set back: when the run is due is for its machine to say.
    if (run.changedAt > this.#context.now()) return false;
    if (run.reason !== "waiting" || (run.dueAt !== null && run.dueAt <= this.#context.now())) return false;
    // What these wait for may have come while nobody was there to be told.
    return openWaits({ calls, deliveries }).every(({ kind }) => kind !== "signal" && kind !== "run");
  }

  #begin(history: RunHistory, gate: Gate): void {
    const { fingerprint, settings, contended, draining } = this.#context;
    const { wallMs } = gate.ok ? gate.runnable.limits : profileLimits("flow");
    this.#run = history.run;
    this.#gate = gate;
    if (gate.ok) this.#aim(gate.runnable);
    const idempotencyKey = (position: number): string => this.#keyOf(position);
    this.#machine = new RunMachine({ history, fingerprint, wallMs, idempotencyKey, ...settings });
    if (contended) this.#events.unshift({ kind: "contended", others: true });
    if (draining) this.#events.unshift({ kind: "drain" });
    this.#handle(this.#machine.start(this.#context.now()));
    this.#gate = null;
    // Large, and wanted only by a version that may not run.
    if (this.#aimed) this.#history = null;
    for (const wait of openWaits(history))
      if (wait.kind === "run" && !this.#stopped) this.#journal.lookAt(wait.position, wait.runId);
  }

  #aim(runnable: Runnable): void {
    this.#aimed = true;
    this.#calls.aim(new CallTarget(runnable, this.#context.settings.virtualTime ? "virtual" : "real"));
  }

  /** Unguessable, since run ids are, and the same after a restart. */
  #keyOf(position: number): string {
    return `${this.runId}.${position}`;
  }

  // ----------------------------------------------------------------------------------------------------------------- events

  /** Something from outside: a run that sleeps has to be looked at. False when it is too late. */
  call(event: RunEvent | null): boolean {
    this.#wanted = true;
    return event === null || this.post(event);
  }

  /** Handles the event now, or after what is being handled. False when it is too late. */
  post(event: RunEvent): boolean {
    if (this.#stopped) return false;
    if (this.#events.length >= eventsMost) {
      this.#bug(new Error(`engine: ${eventsMost} events wait`));
      return false;
    }
    this.#events.push(event);
    if (this.#machine !== null && !this.#handling) this.#handle([]);
    return true;
  }

  #handle(first: readonly RunCommand[]): void {
    this.#handling = true;
    const events = this.#events;
    let next = 0;
    try {
      this.#carryOut(first);
      while (next < events.length && this.#machine !== null && !this.#stopped) {
        const event = events[next++];
        if (event === undefined) break;
        this.#carryOut(this.#machine.handle(event, this.#context.now()));
        if (event.kind === "ended" || event.kind === "refused") this.#work.ended();
      }
    } catch (error) {
      this.#bug(error);
    }
    events.length = 0;
    this.#handling = false;
    if (this.#stopped) return;
    this.#work.tidy();
    if (this.#atRest) this.#rest();
    if (this.#context.draining) this.#context.changed();
  }

  /** The machine has nothing left to do. */
  get #atRest(): boolean {
    return this.#resting !== null && this.#journal.flying === 0 && this.#work.idle;
  }

  /** A call's own answer; one that comes after the end of the run is kept for an operator. */
  #answered(event: CallEvent): void {
    if (!this.#stopped) this.post(event);
    else if (event.kind === "outcome" && this.#resting === "finished" && tellsMore(event.outcome))
      this.#journal.quarantine(event.position, "late", event.outcome);
  }

  // --------------------------------------------------------------------------------------------------------------- commands

  #carryOut(commands: readonly RunCommand[]): void {
    for (const command of commands) {
      if (this.#stopped) return;
      this.#do(command);
    }
  }

  #do(command: RunCommand): void {
    switch (command.kind) {
      case "commit":
        // It goes on after all, for something that came in the same turn.
        this.#resting = null;
        this.#journal.commit(command.token, command.operations);
        return;
      case "classify":
        this.#calls.classify(command, this.#recordedEffect(command.position));
        return;
      case "dispatch":
        this.#calls.dispatch(command.position);
        return;
      case "abort":
        this.#calls.abort(command.position, command.why);
        return;
      case "recover":
        this.#calls.recover(command.position, command.note);
        return;
      case "deliver":
        this.#work.activation?.deliver(command.position, command.outcome, command.guestClockMs);
        return;
      case "fireTimer":
        this.#work.activation?.fireTimer(command.guestClockMs);
        return;
      case "frontier":
        this.#work.activation?.frontier();
        return;
      case "wake":
        this.#work.wake(command.notBefore);
        return;
      case "activate":
        this.#activate(command);
        return;
      case "endWorker":
        this.#work.end(command);
        return;
      case "alarm":
        this.#alarmAt = command.at;
        if (command.at === null) this.#context.alarms.clear(this.#machineAlarm);
        else this.#context.alarms.set(this.#machineAlarm, command.at);
        return;
      case "quarantine":
        this.#journal.quarantine(command.position, command.reason, command.outcome);
        return;
      case "rest":
        this.#resting = command.state;
        return;
    }
  }

  /** Known only for a version that may not run, which has nothing else that tells. */
  #recordedEffect(position: number): Effect | undefined {
    return this.#history?.calls.find((call) => call.position === position)?.effect;
  }

  #activate(command: RunCommand & { readonly kind: "activate" }): void {
    const gate = this.#gate;
    this.#gate = null;
    if (this.#run === null) throw new Error("engine: an activation without a run");
    this.#work.activate(command, this.#run, gate);
  }

  #committed(token: number, operations: readonly RunOperation[], result: UnitResult): void {
    if (this.#stopped) return;
    if (!result.ok) {
      const kind = operations[result.at]?.kind ?? "unit";
      if (result.reason === "fenced") this.post({ kind: "fenced", token });
      else this.#bug(new Error(`engine: the store refused a ${kind}: ${result.message}`));
      return;
    }
    for (const operation of operations) if (operation.kind === "run") this.#changed(operation.patch);
    this.post({ kind: "committed", token, results: result.results });
    for (const operation of operations) {
      if (operation.kind === "call" && operation.call.wait?.kind === "run")
        this.#journal.lookAt(operation.call.position, operation.call.wait.runId);
    }
  }

  #changed(patch: RunPatch): void {
    if (this.#run !== null) this.#run = { ...this.#run, ...patch };
    if (patch.state === "finished" || patch.state === "suspended") this.#journal.tell(patch.state);
  }

  // ---------------------------------------------------------------------------------------------------------------- the end

  #rest(): void {
    // The clock may have been set back since the row was stored: the machine knows.
    if (this.#resting === "suspended") this.#sleep(this.#alarmAt);
    else if (this.#resting === "fenced") this.#lost();
    else this.#gone();
  }

  #sleep(dueAt: number | null): void {
    const { generation } = this.#journal;
    if (generation === null) throw new Error("engine: a run sleeps that is not claimed");
    this.stop("the run is suspended");
    this.#context.sleep(this, generation, dueAt);
  }

  /** It is finished already, not there, or somebody else's. */
  #lost(): void {
    this.#gone();
    this.#context.hooks.gone?.(this.runId);
  }

  #gone(): void {
    this.stop("the run is over");
    this.#context.gone(this);
  }

  /** Lets go of everything, and begins nothing more. */
  stop(why: string): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#context.alarms.clear(this.#machineAlarm);
    this.#context.alarms.clear(this.#loadAlarm);
    this.#calls.abortAll(why);
    this.#work.stop();
  }

  /** When what was begun before `stop` is over. */
  settled(): Promise<void> {
    return this.#journal.settled();
  }

  #bug(error: unknown): void {
    this.#context.failed(this.runId, error);
    if (this.#stopped) return;
    this.stop("flowcell failed");
    if (this.#journal.generation === null) this.#context.gone(this);
    else this.#journal.finishInternal(() => this.#context.gone(this));
  }
}

function openWaits({
  calls,
  deliveries,
}: Pick<RunHistory, "calls" | "deliveries">): readonly (WaitCondition & { readonly position: number })[] {
  const settled = new Set<number>();
  for (const delivery of deliveries) if (delivery.kind === "call") settled.add(delivery.position);
  return calls.flatMap(({ wait, position }) =>
    wait === null || settled.has(position) ? [] : [{ ...wait, position }],
  );
}

/** Whether an outcome that comes after the end of its run says what became of the call. */
function tellsMore(outcome: CallOutcome): boolean {
  return outcome.ok || (outcome.error.code !== "outcome_unknown" && outcome.error.code !== "cancelled");
}
