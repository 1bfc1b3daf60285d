/**
 * A process that holds a simulated run: a machine, and an engine that carries its commands out, late and sometimes strangely.
 * The rules that it checks are listed in simulation.ts.
 */

import type { RunOperation } from "@flowcell/journal";
import type { Recovery } from "@flowcell/protocol";
import type { RunMachine } from "../machine.js";
import { sameOutcome } from "../outcomes.js";
import type { RunCommand, RunEvent } from "../types.js";
import { activationEnd, Cell, type Refusal } from "./cell.js";
import type { Fault } from "./faults.js";
import { Broken, deliveriesIn } from "./record.js";
import { isEffect, runId, type Stage } from "./stage.js";
import { text, type Work } from "./world.js";

type CommandOf<Kind extends RunCommand["kind"]> = RunCommand & { readonly kind: Kind };
type Results = Parameters<Stage["committed"]>[1];

export interface Holder {
  /** Whether this process is the one that holds the run. */
  holds(process: Process): boolean;
  /** The process dies here and now. */
  die(process: Process): Promise<void>;
  /** It drops the machine; the run is looked at again when it is due. */
  letGo(process: Process): void;
}

export interface ProcessOptions {
  readonly stage: Stage;
  readonly holder: Holder;
  readonly owner: string;
  readonly generation: number;
  readonly machine: RunMachine;
  readonly fault: Fault | null;
  /** What the machine was made from. */
  readonly deliveries: number;
  readonly calls: readonly number[];
}

export class Process {
  readonly #options: ProcessOptions;
  readonly #stage: Stage;
  alive = true;
  /** It has lost the run: its world is gone, and all it will hear is that. */
  robbed = false;
  /** It knows. */
  #fenced = false;
  cell: Cell | null = null;
  readonly work = new Map<number, Work>();
  /** Deliveries and calls that the machine knows to be recorded. */
  #known: number;
  readonly #calls: Set<number>;
  /** Why nothing new may begin. */
  #over: "the end" | "a revocation" | "a divergence" | null = null;
  /** Its worker is being ended. */
  #stopping = false;
  /** Calls that the script cancelled. */
  readonly #gaveUp = new Set<number>();
  #alarms = 0;
  #wakes = 0;
  /** The unit on its way to the store, or back. */
  pending: { readonly operations: readonly RunOperation[]; applied: boolean } | null = null;

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.#stage = options.stage;
    this.#known = options.deliveries;
    this.#calls = new Set(options.calls);
  }

  async start(): Promise<void> {
    await this.#carryOut(this.#options.machine.start(this.#stage.now));
  }

  async feed(event: RunEvent): Promise<readonly RunCommand[]> {
    if (!this.alive || (this.robbed && event.kind !== "fenced")) return [];
    this.#note(event);
    const { fault, machine, owner } = this.#options;
    const { record, now, tell } = this.#stage;
    const heard = fault?.event === undefined ? event : fault.event(event, { record });
    if (heard === null) return [];
    tell?.(`${now} ${owner} <- ${JSON.stringify(heard)}`);
    const commands = machine.handle(heard, now);
    await this.#carryOut(commands);
    return commands;
  }

  /** What ends the script, or takes a call back: nothing begins after it. */
  #note(event: RunEvent): void {
    switch (event.kind) {
      case "callCancelled":
        this.#gaveUp.add(event.position);
        return;
      case "ended":
        // One that crosses the end of its worker is not heeded: the script will end so again.
        if (!this.#stopping && isOwnEnd(event)) this.#over ??= "the end";
        return;
      case "cancel":
        this.#over = event.reason === "revoked" ? "a revocation" : (this.#over ?? "the end");
        return;
      case "refused":
        this.#over ??= "a revocation";
        return;
      default:
    }
  }

  /** In a while, if the process is there then. */
  feedLater(delay: number, event: RunEvent): void {
    this.#stage.later(delay, () => this.feed(event));
  }

  async #carryOut(said: readonly RunCommand[]): Promise<void> {
    const { fault, owner, holder } = this.#options;
    const stage = this.#stage;
    const commands = fault?.commands?.(said, { record: stage.record }) ?? said;
    for (const command of commands) {
      if (!this.alive) return;
      stage.tell?.(`${stage.now} ${owner} -> ${JSON.stringify(command)}`);
      if (this.#fenced) checkFenced(command);
      this.#do(command);
      if (stage.mishapsLeft > 0 && !stage.story.fragile && stage.random.below(150) === 0) {
        stage.mishapsLeft -= 1;
        await holder.die(this);
      }
    }
  }

  #do(command: RunCommand): void {
    const stage = this.#stage;
    switch (command.kind) {
      case "wake":
        this.#wake(Math.max(0, command.notBefore - stage.now));
        return;
      case "activate":
        this.#activate(command.guestClockMs);
        return;
      case "frontier":
        this.#frontier();
        return;
      case "deliver": {
        const { position, outcome, guestClockMs } = command;
        const cell = this.#cell();
        stage.record.checkSent({ kind: "call", position, outcome, guestClockMs }, cell.sent);
        cell.deliver(position, outcome, guestClockMs);
        return;
      }
      case "fireTimer": {
        const { guestClockMs } = command;
        const cell = this.#cell();
        stage.record.checkSent({ kind: "timer", guestClockMs }, cell.sent);
        cell.fireTimer(guestClockMs);
        return;
      }
      case "endWorker":
        if (!this.#fenced) this.#cell();
        if (command.status === "replay_diverged" || command.status === "engine_mismatch")
          this.#over ??= "a divergence";
        this.#stopping = true;
        this.cell?.kill(activationEnd(command.status, command.reason));
        return;
      case "classify":
        this.#classify(command);
        return;
      case "dispatch":
        this.#dispatch(command);
        return;
      case "abort": {
        const work = this.work.get(command.position);
        if (work !== undefined) stage.world.abort(work);
        return;
      }
      case "recover":
        this.#recover(command.position);
        return;
      case "commit":
        this.#hand(command);
        return;
      case "quarantine":
        stage.story.quarantined += 1;
        return;
      case "alarm":
        this.#alarm(command.at);
        return;
      case "rest":
        this.#rest(command.state);
        return;
    }
  }

  // ----------------------------------------------------------------------------------------------------------- worker

  #wake(delay: number): void {
    const { random } = this.#stage;
    const wake = ++this.#wakes;
    this.#stage.later(delay + random.below(6), () =>
      this.#wakes === wake ? this.feed({ kind: "go" }) : undefined,
    );
    // One that nobody asked for is not heeded, or not missed.
    if (random.percent(2)) this.feedLater(random.below(200), { kind: "go" });
  }

  #activate(clock: number): void {
    if (this.cell !== null) throw new Broken("a run has two workers");
    this.#stopping = false;
    const stage = this.#stage;
    const { program, guestSeed, inFlight, drifts, crashes } = stage.story;
    this.cell = new Cell({
      program,
      seed: drifts && crashes > 0 ? guestSeed + 1 : guestSeed,
      inFlight,
      clock,
      random: stage.random,
      queue: stage.queue,
      now: () => stage.now,
      refusal: this.#refusal(),
      hear: async (event) => {
        if (event.kind === "called") this.cell?.made.add(event.position);
        if (event.kind === "ended" || event.kind === "refused") this.cell = null;
        await this.feed(event);
      },
    });
  }

  #refusal(): Refusal | null {
    const { random, mishapsLeft, story } = this.#stage;
    if (mishapsLeft === 0 || !random.percent(4)) return null;
    const status = random.pick(["overloaded", "sandbox_unavailable", "revoked"] as const);
    if (status === "revoked") {
      story.cancelled = true;
      return { kind: "refused", end: { ...activationEnd("cancelled", "revoked"), started: false } };
    }
    if (status === "sandbox_unavailable") story.failures += 1;
    return { kind: "ended", end: { ...activationEnd(status, null), started: false } };
  }

  #cell(): Cell {
    if (this.cell === null) throw new Broken("something was sent to a worker that is not there");
    return this.cell;
  }

  #frontier(): void {
    const cell = this.#cell();
    if (cell.sent < this.#known) throw new Broken("the replay was over before everything recorded was sent");
    for (const position of this.#calls)
      if (!cell.made.has(position)) throw new Broken(`the replay was over before call ${position} was made`);
    cell.frontier = true;
  }

  // ------------------------------------------------------------------------------------------------------------ calls

  #classify({ position, name, args }: CommandOf<"classify">): void {
    const stage = this.#stage;
    if (!this.#calls.has(position) && this.cell?.frontier !== true)
      throw new Broken(`call ${position} was begun during a replay`);
    this.#calls.add(position);
    const [seen, , ms] = JSON.parse(args.text) as [number, number, number]; // the guest's own
    const called = stage.name(position, name);
    const as = stage.world.classify(called, String(seen), ms);
    this.feedLater(stage.random.below(4), { kind: "classified", position, as });
    if (called === "approval" && stage.random.percent(10)) {
      // Answered before its row is there.
      const outcome = text(`approved early ${position}`);
      this.feedLater(stage.random.below(8), { kind: "waitDone", position, outcome });
    }
  }

  #dispatch({ position, idempotencyKey }: CommandOf<"dispatch">): void {
    const stage = this.#stage;
    this.#checkBegin(position, stage.checkIntent(position));
    if (this.work.has(position)) throw new Broken(`call ${position} was begun while it was under way`);
    const work = stage.world.begin(position, stage.nameOf(position), idempotencyKey);
    this.work.set(position, work);
    stage.later(work.appliesAfter, () => {
      if (this.work.get(position) !== work) return;
      stage.world.apply(work);
      stage.checkDeed(position);
    });
    stage.later(work.answersAfter, async () => {
      if (this.work.get(position) !== work) return;
      this.work.delete(position);
      await this.#answer(work);
    });
  }

  /** `attempts`: of an effect; the first begins something new. */
  #checkBegin(position: number, attempts: number): void {
    if (attempts === 1 && (this.#over !== null || this.#gaveUp.has(position)))
      throw new Broken(`call ${position} was begun after ${this.#over ?? "the script cancelled it"}`);
    if (attempts > 1 && (this.#over === "a divergence" || this.#over === "a revocation"))
      throw new Broken(`call ${position} was begun again after ${this.#over}`);
  }

  /** The outcome comes, and sometimes comes again. */
  async #answer(work: Work): Promise<void> {
    const { world, random, record } = this.#stage;
    const { position, name } = work;
    const outcome = world.answer(work);
    await this.feed({ kind: "outcome", position, outcome });
    if (!random.percent(5)) return;
    const other = random.percent(50) ? outcome : text("something else");
    this.#stage.later(random.below(50), async () => {
      const recorded = record.calls.has(position);
      const commands = await this.feed({ kind: "outcome", position, outcome: other });
      if (!this.alive || this.robbed || this.#options.fault !== null || !isEffect(name)) return;
      const noted = commands.some(({ kind }) => kind === "quarantine");
      if (recorded && !noted && !sameOutcome(outcome, other))
        throw new Broken(`a contradicting outcome of call ${position} is lost`);
    });
  }

  #recover(position: number): void {
    const { world, random } = this.#stage;
    const recovery: Recovery = world.prove(position, this.#stage.nameOf(position));
    this.feedLater(random.below(20), { kind: "recovered", position, recovery });
  }

  // ------------------------------------------------------------------------------------------------------------ store

  /** A unit goes to the store, and comes back acknowledged. */
  #hand({ token, operations }: CommandOf<"commit">): void {
    const stage = this.#stage;
    if (this.#fenced || stage.over) throw new Broken("a commit after the end");
    if (this.pending !== null) throw new Broken("two units of a run are under way");
    const pending = { operations, applied: false };
    this.pending = pending;
    const slow = stage.random.percent(3) ? stage.random.between(20, 400) : stage.random.below(6);
    stage.later(slow, async () => {
      if (!this.alive) return;
      pending.applied = true;
      const results = await this.commit(operations);
      stage.later(stage.random.below(4), () => this.#acknowledge(token, operations, results));
    });
  }

  async #acknowledge(
    token: number,
    operations: readonly RunOperation[],
    results: Results | null,
  ): Promise<void> {
    if (!this.alive) return;
    this.pending = null;
    if (results === null) {
      this.#fenced = true;
      await this.feed({ kind: "fenced", token });
      this.alive = false;
      return;
    }
    this.#known += deliveriesIn(operations, results);
    for (const one of operations) if (one.kind === "call") this.#calls.add(one.call.position);
    await this.feed({ kind: "committed", token, results });
  }

  /** Null: the process does not hold the run any more. */
  async commit(operations: readonly RunOperation[]): Promise<Results | null> {
    const { owner, generation, holder } = this.#options;
    const result = await this.#stage.store.commit({ fence: { runId, owner, generation }, operations });
    const holds = holder.holds(this);
    if (!result.ok) {
      if (result.reason === "conflict") throw new Broken(`the store refused a unit: ${result.message}`);
      if (holds) throw new Broken("the holder of the run was fenced off");
      return null;
    }
    if (!holds) throw new Broken("a unit of a former holder was committed");
    this.#stage.committed(operations, result.results, this.cell !== null && !this.cell.ended);
    return result.results;
  }

  // ------------------------------------------------------------------------------------------------------------- time

  #alarm(at: number | null): void {
    const alarm = ++this.#alarms;
    if (at === null) return;
    if (at <= this.#stage.now) throw new Broken("an alarm in the past");
    this.#stage.later(at - this.#stage.now, () =>
      this.#alarms === alarm ? this.feed({ kind: "alarm" }) : undefined,
    );
  }

  #rest(state: "suspended" | "finished" | "fenced"): void {
    if (state === "fenced") return;
    const { record, random } = this.#stage;
    // Reads that were given up, and what a run that is over had begun, may go on in the world.
    const busy = state === "suspended" && [...this.work.values()].some(({ name }) => isEffect(name));
    if (busy || this.pending !== null || this.cell !== null)
      throw new Broken(`the machine rests, ${state}, while something is going on`);
    if (record.state !== state)
      throw new Broken(`the machine rests, ${state}, and the run is ${record.state}`);
    if (state === "suspended" && random.percent(50)) this.#options.holder.letGo(this);
  }
}

function isOwnEnd({ end: { status } }: RunEvent & { readonly kind: "ended" }): boolean {
  return status === "completed" || status === "script_error";
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
