/**
 * One simulated run: a program, a world, a store and an engine that carries out the machine's commands late, with crashes,
 * deaths of workers, a second owner, cancels, deadlines, drains, late and doubled outcomes, and an operator. Everything is
 * drawn from the seed; the same seed gives the same run.
 *
 * Checked at every step (S) and when the run has ended (E); a broken one is thrown as `Broken`:
 *   S  a `once` or `keyed` effect happens at most once for each call
 *   S  no effect is begun before its intent is stored, and once for each recorded attempt
 *   S  what is sent to a worker was committed before, in its order, without gaps, as it was recorded
 *   S  a replay begins nothing new until everything recorded was sent and made
 *   S  the store refuses no unit but for the fence: orders, states and outcomes follow its rules
 *   S  a process that lost the run has nothing committed, and says nothing more than to stop
 *   S  a run has at most one worker; a suspended or finished one has none
 *   S  a finished run never changes; no signal is taken twice
 *   S  a call is marked unknown only if it was begun before a crash and could not be proven
 *   S  an outcome that contradicts a recorded one is quarantined
 *   E  what took effect is on record as what it was, or as unknown; what did not is not on record as done
 *   E  every effect that was begun has an outcome
 *   E  a new guest that is given the record does just what was recorded, and ends with the recorded result and log
 *   E  the run ended as an uncut one could have: other ends need their cause
 *   E  when no more goes wrong, every run ends (no more than so many steps)
 */

import { MemoryStore, type NewRun, type RunHistory, type RunOperation } from "@flowcell/journal";
import { RunMachine } from "../machine.js";
import { sameOutcome } from "../outcomes.js";
import type { ActivationEnd, RunCommand, RunEvent } from "../types.js";
import { activationEnd, Cell } from "./cell.js";
import { checkEnd } from "./check-end.js";
import { type Fault, type FaultName, faults } from "./faults.js";
import { type CallName, callNames, type Node, ProgramMaker } from "./program.js";
import { type Action, Queue } from "./queue.js";
import { Random } from "./random.js";
import { Broken, Record } from "./record.js";
import { text, type Work, World } from "./world.js";

const startMs = 1_000_000;
const runId = "run_simulated";
const stepsMost = 30_000;
const failuresMost = 3;

/** What a run went through, for the checks of its end and for counting what a simulation covers. */
export interface Story {
  readonly seed: number;
  readonly program: Node;
  readonly guestSeed: number;
  readonly inFlight: number;
  readonly deadlineMs: number;
  readonly startMs: number;
  /** Processes that died, or lost the run. */
  crashes: number;
  deaths: number;
  cancelled: boolean;
  /** The guest is another one after the first crash. */
  readonly drifts: boolean;
  endedAt: number;
  steps: number;
  suspensions: number;
  reconciliations: number;
  quarantined: number;
}

/** One process that holds the run. */
interface Process {
  readonly owner: string;
  readonly generation: number;
  readonly machine: RunMachine;
  readonly fault: Fault | null;
  alive: boolean;
  /** It has lost the run: its world is gone, and all it will hear is that. */
  robbed: boolean;
  /** It knows. */
  fenced: boolean;
  cell: Cell | null;
  readonly work: Map<number, Work>;
  /** Deliveries and calls that the machine knows to be recorded. */
  known: number;
  readonly calls: Set<number>;
  alarm: number;
  wake: number;
  /** The unit on its way to the store, or back. */
  pending: { readonly operations: readonly RunOperation[]; applied: boolean } | null;
}

export class Simulation {
  readonly story: Story;
  readonly #random: Random;
  readonly #queue = new Queue();
  readonly #store = new MemoryStore();
  readonly #world: World;
  readonly #record = new Record();
  readonly #faultName: FaultName | null;
  readonly #virtualTime: boolean;
  readonly #newEngine: boolean;
  #now = startMs;
  #process: Process | null = null;
  #adopting = false;
  #owners = 0;
  #mishapsLeft: number;
  #signals = 0;
  #over = false;
  readonly #tell: ((line: string) => void) | null;

  /** `tell` hears all that goes in and out of the machines. */
  constructor(
    seed: number,
    faultName: FaultName | null = null,
    tell: ((line: string) => void) | null = null,
  ) {
    this.#tell = tell;
    const random = new Random(seed);
    this.#random = random;
    this.#faultName = faultName;
    this.#world = new World(random);
    this.#mishapsLeft = random.percent(20) ? 0 : random.between(1, 6);
    this.#virtualTime = random.percent(10);
    this.#newEngine = random.percent(10);
    this.story = {
      seed,
      program: new ProgramMaker(random).make(),
      guestSeed: random.below(0x7fff_ffff),
      inFlight: random.pick([1, 2, 3, 8]),
      deadlineMs: random.percent(6) ? random.between(20, 20_000) : 1e12,
      startMs,
      crashes: 0,
      deaths: 0,
      cancelled: false,
      drifts: random.percent(3),
      endedAt: 0,
      steps: 0,
      suspensions: 0,
      reconciliations: 0,
      quarantined: 0,
    };
  }

  async run(): Promise<Story> {
    await this.#store.commit({ operations: [{ kind: "createRun", run: newRun(this.story) }] });
    this.#later(0, () => this.#adopt());
    this.#later(this.#random.between(5, 500), () => this.#operate());
    for (let next = this.#queue.take(); next !== undefined; next = this.#queue.take()) {
      this.story.steps += 1;
      if (this.story.steps > stepsMost) throw new Broken("the run does not end");
      this.#now = Math.max(this.#now, next.at);
      const acted = next.act();
      if (acted instanceof Promise) await acted;
      if (!this.#over && this.#mishapsLeft > 0 && this.#random.below(40) === 0) await this.#mishap();
    }
    const history = await this.#store.history(runId);
    if (history === null) throw new Broken("the run is gone");
    checkEnd(this.story, history, await this.#store.logs(runId), this.#world.deeds);
    return this.story;
  }

  #later(delay: number, act: Action): void {
    this.#queue.put(this.#now + delay, act);
  }

  // -------------------------------------------------------------------------------------------------------- processes

  /** A process takes the run up. */
  async #adopt(): Promise<void> {
    this.#adopting = false;
    if (this.#record.state === "finished") {
      this.#over = true;
      this.story.endedAt ||= this.#now;
      return;
    }
    const owner = `process ${this.#owners++}`;
    const claimed = await this.#store.commit({ operations: [{ kind: "claim", runId, owner }] });
    const claim = claimed.ok ? claimed.results[0] : undefined;
    if (claim?.kind !== "claim") throw new Broken("an unfinished run cannot be claimed");
    let history = await this.#store.history(runId);
    if (history === null) throw new Broken("the run is gone");
    const fault = this.#faultName === null ? null : faults[this.#faultName]();
    history = fault?.history?.(history) ?? history;
    const process: Process = {
      owner,
      generation: claim.generation,
      machine: new RunMachine(this.#options(history)),
      fault,
      alive: true,
      robbed: false,
      fenced: false,
      cell: null,
      work: new Map(),
      known: history.deliveries.length,
      calls: new Set(history.calls.map(({ position }) => position)),
      alarm: 0,
      wake: 0,
      pending: null,
    };
    this.#process = process;
    await this.#carryOut(process, process.machine.start(this.#now));
  }

  #options(history: RunHistory): ConstructorParameters<typeof RunMachine>[0] {
    return {
      history,
      fingerprint: this.#newEngine && this.#owners > 1 ? "engine 2" : "engine 1",
      inFlight: this.story.inFlight,
      blockedMostMs: 200,
      suspendAfterMs: 100,
      wallMs: 5_000,
      failuresMost,
      virtualTime: this.#virtualTime,
      idempotencyKey: (position) => `key ${position}`,
    };
  }

  /** Gives something to the process that holds the run, after one has taken it up if there is none. */
  #toHolder(event: () => RunEvent | null): void {
    const process = this.#process;
    if (process === null) {
      if (!this.#adopting) {
        this.#adopting = true;
        this.#later(this.#random.below(5), () => this.#adopt());
      }
      this.#later(20, () => {
        if (!this.#over) this.#toHolder(event);
      });
      return;
    }
    const now = event();
    if (now !== null) this.#later(this.#random.below(3), () => this.#feed(process, now));
  }

  async #feed(process: Process, event: RunEvent): Promise<readonly RunCommand[]> {
    if (!process.alive || (process.robbed && event.kind !== "fenced")) return [];
    const heard =
      process.fault?.event === undefined ? event : process.fault.event(event, { record: this.#record });
    if (heard === null) return [];
    this.#tell?.(`${this.#now} ${process.owner} <- ${JSON.stringify(heard)}`);
    const commands = process.machine.handle(heard, this.#now);
    await this.#carryOut(process, commands);
    return commands;
  }

  async #carryOut(process: Process, said: readonly RunCommand[]): Promise<void> {
    const commands = process.fault?.commands?.(said, { record: this.#record }) ?? said;
    for (const command of commands) {
      if (!process.alive) return;
      this.#tell?.(`${this.#now} ${process.owner} -> ${JSON.stringify(command)}`);
      if (process.fenced) checkFenced(command);
      this.#do(process, command);
      if (this.#mishapsLeft > 0 && this.#random.below(150) === 0) {
        this.#mishapsLeft -= 1;
        await this.#crash(process);
      }
    }
  }

  /** The process dies, with its worker. */
  async #crash(process: Process): Promise<void> {
    if (!process.alive) return;
    process.alive = false;
    if (process.robbed) return;
    this.#tell?.(`${this.#now} ${process.owner} dies`);
    process.cell?.vanish();
    this.story.crashes += 1;
    for (const work of process.work.values()) this.#world.orphan(work);
    const { pending } = process;
    // What was handed to the store may have arrived, though nobody heard of it.
    if (pending !== null && !pending.applied && this.#random.percent(40))
      await this.#commit(process, pending.operations);
    this.#process = null;
    this.#adopting = true;
    this.#later(this.#random.between(1, 50), () => this.#adopt());
  }

  /** Another process takes the run away; this one notices when it commits. */
  async #steal(process: Process): Promise<void> {
    if (process.pending === null || process.pending.applied) return;
    process.robbed = true;
    this.#tell?.(`${this.#now} ${process.owner} is robbed`);
    this.story.crashes += 1;
    for (const work of process.work.values()) this.#world.orphan(work);
    process.work.clear();
    process.cell?.vanish();
    process.cell = null;
    await this.#adopt();
  }

  async #mishap(): Promise<void> {
    const process = this.#process;
    if (process === null || !process.alive) return;
    this.#mishapsLeft -= 1;
    const draw = this.#random.below(100);
    if (draw < 40) await this.#crash(process);
    else if (draw < 62) this.#killWorker(process);
    else if (draw < 72) await this.#steal(process);
    else if (draw < 85) await this.#feed(process, { kind: "contended", others: this.#random.percent(70) });
    else if (draw < 92) await this.#drain(process);
    else if (draw < 96) await this.#cancel(process);
    else await this.#feed(process, { kind: "outcome", position: 10_000, outcome: text("stray") });
  }

  #killWorker({ cell }: Process): void {
    if (cell === null || cell.ended) return;
    this.story.deaths += 1;
    cell.end(activationEnd("worker_lost", "signal"));
  }

  /** The service goes down in an orderly way, and comes back. */
  async #drain(process: Process): Promise<void> {
    await this.#feed(process, { kind: "drain" });
    this.#later(this.#random.between(10, 3_000), () => this.#crash(process));
  }

  async #cancel(process: Process): Promise<void> {
    this.story.cancelled = true;
    const reason = this.#random.pick(["caller", "revoked", "superseded"] as const);
    await this.#feed(process, { kind: "cancel", by: "somebody", reason });
  }

  // --------------------------------------------------------------------------------------------------------- commands

  #do(process: Process, command: RunCommand): void {
    switch (command.kind) {
      case "wake": {
        const wake = ++process.wake;
        const delay = Math.max(0, command.notBefore - this.#now) + this.#random.below(6);
        this.#later(delay, async () => {
          if (process.wake === wake) await this.#feed(process, { kind: "go" });
        });
        return;
      }
      case "activate":
        this.#activate(process, command.guestClockMs);
        return;
      case "frontier":
        this.#frontier(process);
        return;
      case "deliver": {
        const { position, outcome, guestClockMs } = command;
        const cell = this.#cell(process);
        this.#record.checkSent({ kind: "call", position, outcome, guestClockMs }, cell.sent);
        cell.deliver(position, outcome, guestClockMs);
        return;
      }
      case "fireTimer": {
        const cell = this.#cell(process);
        this.#record.checkSent({ kind: "timer", guestClockMs: command.guestClockMs }, cell.sent);
        cell.fireTimer(command.guestClockMs);
        return;
      }
      case "endWorker":
        if (process.cell === null && !process.fenced)
          throw new Broken("a worker was ended that is not there");
        process.cell?.kill(activationEnd(command.status, command.reason));
        return;
      case "classify":
        this.#classify(process, command);
        return;
      case "dispatch":
        this.#dispatch(process, command.position, command.idempotencyKey);
        return;
      case "abort": {
        const work = process.work.get(command.position);
        if (work !== undefined) this.#world.abort(work);
        return;
      }
      case "recover": {
        const { position } = command;
        const recovery = this.#world.prove(position, this.#nameOf(position));
        this.#later(this.#random.below(20), async () => {
          await this.#feed(process, { kind: "recovered", position, recovery });
        });
        return;
      }
      case "commit":
        if (process.fenced || this.#record.state === "finished") throw new Broken("a commit after the end");
        this.#hand(process, command);
        return;
      case "quarantine":
        this.story.quarantined += 1;
        return;
      case "alarm": {
        const alarm = ++process.alarm;
        if (command.at === null) return;
        if (command.at <= this.#now) throw new Broken("an alarm in the past");
        this.#later(command.at - this.#now, async () => {
          if (process.alarm === alarm) await this.#feed(process, { kind: "alarm" });
        });
        return;
      }
      case "rest":
        this.#rest(process, command.state);
        return;
    }
  }

  #activate(process: Process, clock: number): void {
    if (process.cell !== null) throw new Broken("a run has two workers");
    const { program, guestSeed, inFlight, drifts, crashes } = this.story;
    process.cell = new Cell({
      program,
      seed: drifts && crashes > 0 ? guestSeed + 1 : guestSeed,
      inFlight,
      clock,
      random: this.#random,
      queue: this.#queue,
      now: () => this.#now,
      refusal: this.#refusal(),
      hear: async (event) => {
        if (event.kind === "called") process.cell?.made.add(event.position);
        if (event.kind === "ended") process.cell = null;
        await this.#feed(process, event);
      },
    });
  }

  #refusal(): ActivationEnd | null {
    if (this.#mishapsLeft === 0 || !this.#random.percent(4)) return null;
    const status = this.#random.pick(["overloaded", "sandbox_unavailable"] as const);
    if (status === "sandbox_unavailable") this.story.deaths += 1;
    return { ...activationEnd(status, null), started: false };
  }

  #cell({ cell }: Process): Cell {
    if (cell === null) throw new Broken("something was sent to a worker that is not there");
    return cell;
  }

  #frontier(process: Process): void {
    const cell = this.#cell(process);
    if (cell.sent < process.known)
      throw new Broken("the replay was over before everything recorded was sent");
    for (const position of process.calls)
      if (!cell.made.has(position)) throw new Broken(`the replay was over before call ${position} was made`);
    cell.frontier = true;
  }

  #classify(process: Process, { position, name, args }: RunCommand & { readonly kind: "classify" }): void {
    if (!process.calls.has(position) && process.cell?.frontier !== true)
      throw new Broken(`call ${position} was begun during a replay`);
    process.calls.add(position);
    const called = callNames.find((one) => one === name);
    if (called === undefined) throw new Broken(`a call by the unknown name ${name}`);
    const [seen, , ms] = JSON.parse(args.text) as [number, number, number]; // the guest's own
    const as = this.#world.classify(called, String(seen), ms);
    this.#later(this.#random.below(4), async () => {
      await this.#feed(process, { kind: "classified", position, as });
    });
  }

  #nameOf(position: number): CallName {
    const name = callNames.find((one) => one === this.#record.calls.get(position)?.name);
    return name ?? "read";
  }

  #dispatch(process: Process, position: number, key: string): void {
    const call = this.#record.calls.get(position);
    const name = this.#nameOf(position);
    if (call !== undefined) this.#begun(position, call.attempts);
    if (process.work.has(position)) throw new Broken(`call ${position} was begun while it was under way`);
    const work = this.#world.begin(position, name, key);
    process.work.set(position, work);
    this.#later(work.appliesAfter, () => {
      if (!process.alive || process.work.get(position) !== work) return;
      this.#world.apply(work);
      this.#checkDeed(position);
    });
    this.#later(work.answersAfter, async () => {
      if (!process.alive || process.work.get(position) !== work) return;
      process.work.delete(position);
      await this.#answer(process, work);
    });
  }

  readonly #dispatched = new Map<number, number>();

  #begun(position: number, attempts: number): void {
    const times = (this.#dispatched.get(position) ?? 0) + 1;
    this.#dispatched.set(position, times);
    if (times > attempts)
      throw new Broken(`call ${position} was begun ${times} times, with ${attempts} intents`);
  }

  #checkDeed(position: number): void {
    const deed = this.#world.deeds.get(position);
    if (deed !== undefined && deed.applied > 1)
      throw new Broken(`the effect of call ${position} (${deed.name}) happened ${deed.applied} times`);
  }

  /** The outcome comes, and sometimes comes again. */
  async #answer(process: Process, work: Work): Promise<void> {
    const { position, name } = work;
    const outcome = this.#world.answer(work);
    await this.#feed(process, { kind: "outcome", position, outcome });
    if (!this.#random.percent(5)) return;
    const other = this.#random.percent(50) ? outcome : text("something else");
    this.#later(this.#random.below(50), async () => {
      // A record of its own makes a contradiction; before that the call may be begun anew.
      const call = this.#record.calls.get(position);
      const commands = await this.#feed(process, { kind: "outcome", position, outcome: other });
      if (!process.alive || process.fenced || process.fault !== null || name === "read") return;
      const noted = commands.some(({ kind }) => kind === "quarantine");
      const contradicts = !sameOutcome(outcome, other);
      if (call !== undefined && contradicts && !noted)
        throw new Broken(`a contradicting outcome of call ${position} is lost`);
    });
  }

  // ------------------------------------------------------------------------------------------------------------ store

  /** A unit goes to the store, and comes back acknowledged. */
  #hand(process: Process, command: RunCommand & { readonly kind: "commit" }): void {
    const { token, operations } = command;
    const pending = { operations, applied: false };
    process.pending = pending;
    const slow = this.#random.percent(3) ? this.#random.between(20, 400) : this.#random.below(6);
    this.#later(slow, async () => {
      if (!process.alive) return;
      pending.applied = true;
      const results = await this.#commit(process, operations);
      this.#later(this.#random.below(4), async () => {
        if (!process.alive) return;
        process.pending = null;
        if (results === null) {
          process.fenced = true;
          await this.#feed(process, { kind: "fenced", token });
          process.alive = false;
          return;
        }
        process.known += deliveriesIn(operations, results);
        for (const one of operations) if (one.kind === "call") process.calls.add(one.call.position);
        await this.#feed(process, { kind: "committed", token, results });
      });
    });
  }

  /** Null: the process does not hold the run any more. */
  async #commit(
    process: Process,
    operations: readonly RunOperation[],
  ): Promise<Parameters<Record["apply"]>[1] | null> {
    const { owner, generation } = process;
    const result = await this.#store.commit({ fence: { runId, owner, generation }, operations });
    if (!result.ok) {
      if (result.reason === "conflict") throw new Broken(`the store refused a unit: ${result.message}`);
      if (this.#process === process) throw new Broken("the holder of the run was fenced off");
      return null;
    }
    if (this.#process !== process && process.alive)
      throw new Broken("a unit of a former holder was committed");
    this.#record.apply(operations, result.results);
    for (const operation of operations) this.#checkOperation(process, operation);
    return result.results;
  }

  #checkOperation({ cell }: Process, operation: RunOperation): void {
    if (operation.kind === "unknown" && operation.reason !== null) {
      const { position } = operation;
      const name = this.#nameOf(position);
      this.story.reconciliations += 1;
      if (
        this.story.crashes === 0 ||
        (name !== "once" && name !== "proven") ||
        !this.#dispatchedOnce(position)
      )
        throw new Broken(`call ${position} is said to be unknown, and is not`);
    }
    if (operation.kind !== "run") return;
    const { state } = operation.patch;
    if (state === "suspended") this.story.suspensions += 1;
    if ((state === "suspended" || state === "finished") && cell !== null && !cell.ended)
      throw new Broken(`a ${state} run holds a worker`);
    if (state === "finished") {
      this.story.endedAt = this.#now;
      this.#over = true;
    }
  }

  /** Whether its intent is stored: it may have been begun. */
  #dispatchedOnce(position: number): boolean {
    return (this.#record.calls.get(position)?.attempts ?? 0) > 0;
  }

  #rest(process: Process, state: "suspended" | "finished" | "fenced"): void {
    // What a run that is over had begun may go on in the world: it was given up.
    const { pending, cell, work } = process;
    const effects = state === "suspended" && [...work.values()].some(({ name }) => name !== "read");
    if (state !== "fenced" && (pending !== null || cell !== null || effects))
      throw new Broken(`the machine rests, ${state}, while something is going on`);
    if (state === "suspended") {
      if (this.#record.state !== "suspended")
        throw new Broken(`the machine rests in a ${this.#record.state} run`);
      if (this.#random.percent(50)) this.#letGo(process);
    } else if (state === "finished" && this.#record.state !== "finished") {
      throw new Broken("the machine rests in an unfinished run");
    }
  }

  /** The machine is dropped; the store knows when the run is to be looked at. */
  #letGo(process: Process): void {
    process.alive = false;
    this.#process = null;
    const { dueAt } = this.#record;
    if (dueAt === null) return;
    this.#later(Math.max(0, dueAt - this.#now), async () => {
      if (this.#process === null && !this.#adopting && !this.#over) await this.#adopt();
    });
  }

  // --------------------------------------------------------------------------------------------------------- operator

  /** An operator looks in now and then, and does what somebody has to do for the run to go on. */
  #operate(): void {
    if (this.#over) return;
    this.#later(this.#random.between(20, 2_000), () => this.#operate());
    const record = this.#record;
    if (record.status === "needs_reconcile") this.#reconcile();
    if (this.#signals - record.signals.size < record.waitingForSignals || this.#random.percent(3))
      this.#signal();
    for (const [position, { open, wait }] of record.calls) {
      if (open && wait?.kind === "approval")
        this.#toHolder(() => ({ kind: "waitDone", position, outcome: text(`approved ${position}`) }));
    }
  }

  #signal(): void {
    const number = this.#signals++;
    const value = { text: `"signal ${number}"`, devalue: false, attachments: [] };
    this.#later(this.#random.below(20), async () => {
      const operation = {
        kind: "sendSignal",
        runId,
        name: "s",
        value,
        signalId: `${number}`,
        at: this.#now,
      } as const;
      const sent = await this.#store.commit({ operations: [operation] });
      if (!sent.ok) throw new Broken("a signal was refused");
      this.#toHolder(() => ({ kind: "signalled", name: "s" }));
    });
  }

  #reconcile(): void {
    for (const [position, { unknown, open }] of this.#record.calls) {
      if (!unknown || !open) continue;
      this.#toHolder(() => {
        if (this.#random.percent(8)) {
          this.story.cancelled = true;
          return { kind: "cancel", by: "operator", reason: "caller" };
        }
        if (this.#record.calls.get(position)?.unknown !== true) return null;
        const outcome = this.#world.deeds.get(position)?.outcome ?? null;
        const decision =
          outcome === null ? ({ kind: "not_applied" } as const) : ({ kind: "observed", outcome } as const);
        return { kind: "reconcile", position, decision };
      });
    }
  }
}

function checkFenced(command: RunCommand): void {
  switch (command.kind) {
    case "endWorker":
    case "abort":
    case "alarm":
    case "rest":
      return;
    default:
      throw new Broken(`a machine that lost its run says ${command.kind}`);
  }
}

function deliveriesIn(operations: readonly RunOperation[], results: Parameters<Record["apply"]>[1]): number {
  let count = 0;
  for (const [at, { kind }] of operations.entries()) {
    const result = results[at];
    if (kind === "deliver" || kind === "timer" || kind === "local") count += 1;
    else if (kind === "takeSignal" && result?.kind === "signal" && result.value !== null) count += 1;
  }
  return count;
}

function newRun({ guestSeed, deadlineMs }: Story): NewRun {
  return {
    runId,
    flow: "simulated",
    versionHash: "hash",
    trigger: { kind: "manual", by: "simulator" },
    deduplicationKey: null,
    concurrencyKey: "",
    input: { text: "null", devalue: false, attachments: [] },
    seed: String(guestSeed),
    guestStartMs: startMs,
    createdAt: startMs,
    notBefore: startMs,
    deadlineMs,
    attempt: 1,
  };
}
