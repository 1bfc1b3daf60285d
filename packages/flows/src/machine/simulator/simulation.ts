/**
 * One simulated run: a program, a world, a store and processes that carry out the machine's commands late, with crashes,
 * deaths of workers, a second owner, cancels, deadlines, drains, late and doubled outcomes, and an operator. Everything is
 * drawn from the seed; the same seed gives the same run.
 *
 * Checked at every step (S) and when the run has ended (E); a broken one is thrown as `Broken`:
 *   S  a `once` or `keyed` effect happens at most once for each call
 *   S  no effect is begun before its intent is stored, and once for each recorded attempt
 *   S  what is sent to a worker was committed before, in its order, without gaps, as it was recorded
 *   S  a replay begins nothing new until everything recorded was sent and made
 *   S  what the script had not begun when it ended, or gave up before, is not begun; after a divergence nothing is
 *   S  the store refuses no unit but for the fence: orders, states and outcomes follow its rules
 *   S  a process that lost the run has nothing committed, and says nothing more than to stop
 *   S  a run has at most one worker; a suspended or finished one has none
 *   S  a finished run never changes; no signal is taken twice
 *   S  a call is marked unknown only if it was begun before a crash and could not be proven, and once for each crash
 *   S  an outcome that contradicts a recorded one is quarantined
 *   E  what took effect is on record as what it was, or as unknown; what did not is not on record as done
 *   E  every effect that was begun has an outcome
 *   E  a new guest that is given the record does just what was recorded, and ends with the recorded result and log
 *   E  the run ended as an uncut one could have: other ends need their cause
 *   E  when no more goes wrong, every run ends (no more than so many steps)
 */

import { RunMachine } from "../machine.js";
import type { RunEvent } from "../types.js";
import { activationEnd } from "./cell.js";
import { checkEnd } from "./check-end.js";
import { type FaultName, faults } from "./faults.js";
import { Operator } from "./operator.js";
import { type Holder, Process } from "./process.js";
import { Broken } from "./record.js";
import { failuresMost, runId, Stage, type Story } from "./stage.js";
import { text } from "./world.js";

/** The highest draw of a mishap that kills the worker. */
const killWorker = 61;
const stepsMost = 30_000;

/** `tell` hears all that goes into the machines and comes out of them. Throws Broken. */
export async function simulate(
  seed: number,
  faultName: FaultName | null = null,
  tell: ((line: string) => void) | null = null,
): Promise<Story> {
  return await new Simulation(new Stage(seed, tell), faultName).run();
}

class Simulation implements Holder {
  readonly #stage: Stage;
  readonly #faultName: FaultName | null;
  #process: Process | null = null;
  #adopting = false;
  #owners = 0;

  constructor(stage: Stage, faultName: FaultName | null) {
    this.#stage = stage;
    this.#faultName = faultName;
  }

  async run(): Promise<Story> {
    const stage = this.#stage;
    const { story, queue, random, store } = stage;
    await store.commit({ operations: [{ kind: "createRun", run: stage.newRun() }] });
    this.#adoptLater(0);
    new Operator(stage, {
      give: (event) => this.#toHolder(event),
      tell: (event) => this.#tell(event),
    }).begin();
    for (let next = queue.take(); next !== undefined; next = queue.take()) {
      story.steps += 1;
      if (story.steps > stepsMost) throw new Broken("the run does not end");
      stage.now = Math.max(stage.now, next.at);
      const acted = next.act();
      if (acted instanceof Promise) await acted;
      if (!stage.over && stage.mishapsLeft > 0 && random.below(40) === 0) await this.#mishap();
    }
    const history = await store.history(runId);
    if (history === null) throw new Broken("the run is gone");
    checkEnd(story, history, await store.logs(runId), stage.world.deeds);
    return story;
  }

  holds(process: Process): boolean {
    return this.#process === process;
  }

  // -------------------------------------------------------------------------------------------------------- processes

  #adoptLater(delay: number): void {
    if (this.#adopting) return;
    this.#adopting = true;
    this.#stage.later(delay, () => this.#adopt());
  }

  /** A process takes the run up. */
  async #adopt(): Promise<void> {
    this.#adopting = false;
    const stage = this.#stage;
    const { store, story } = stage;
    if (stage.over) return;
    const owner = `process ${this.#owners++}`;
    const claimed = await store.commit({ operations: [{ kind: "claim", runId, owner }] });
    const claim = claimed.ok ? claimed.results[0] : undefined;
    const stored = await store.history(runId);
    if (claim?.kind !== "claim" || stored === null) throw new Broken("an unfinished run cannot be claimed");
    const fault = this.#faultName === null ? null : faults[this.#faultName]();
    const history = fault !== null && "history" in fault ? fault.history(stored) : stored;
    const machine = new RunMachine({
      history,
      fingerprint: story.newEngine && this.#owners > 1 ? "engine 2" : "engine 1",
      blockedMostMs: 200,
      suspendAfterMs: 100,
      wallMs: 5_000,
      failuresMost,
      recordedBytesMost: story.recordedBytesMost,
      timersMost: story.timersMost,
      virtualTime: story.virtualTime,
      idempotencyKey: (position) => `key ${position}`,
    });
    this.#process = new Process({
      stage,
      holder: this,
      owner,
      generation: claim.generation,
      machine,
      fault,
      deliveries: history.deliveries.length,
      calls: history.calls.map(({ position }) => position),
    });
    await this.#process.start();
  }

  /** Gives something to the process that holds the run, after one has taken it up if there is none. */
  #toHolder(event: () => RunEvent | null): void {
    const stage = this.#stage;
    if (stage.over) return;
    const process = this.#process;
    if (process === null) {
      this.#adoptLater(stage.random.below(5));
      stage.later(20, () => this.#toHolder(event));
      return;
    }
    const now = event();
    if (now?.kind === "cancel") stage.story.cancelled = true;
    if (now === null) return;
    // It may have let go of the run by then.
    stage.later(stage.random.below(3), () => (process.alive ? process.feed(now) : this.#toHolder(() => now)));
  }

  /** Lets the process that holds the run know; if there is none, the next one has to find out for itself. */
  #tell(event: RunEvent): void {
    const stage = this.#stage;
    if (stage.over) return;
    const process = this.#process;
    if (process === null) this.#adoptLater(stage.random.below(5));
    else stage.later(stage.random.below(3), () => (process.alive ? process.feed(event) : this.#tell(event)));
  }

  /** The process dies, with its worker. What it had under way has happened or has not. */
  async die(process: Process): Promise<void> {
    const { random, story } = this.#stage;
    if (!process.alive) return;
    process.alive = false;
    if (process.robbed) return;
    this.#stage.tell?.(`${this.#stage.now} it dies`);
    this.#loseWorld(process);
    story.crashes += 1;
    const { pending } = process;
    // What was handed to the store may have arrived, though nobody heard of it.
    if (pending !== null && !pending.applied && random.percent(40)) await process.commit(pending.operations);
    this.#process = null;
    this.#adoptLater(random.between(1, 50));
  }

  #loseWorld(process: Process): void {
    process.cell?.vanish();
    process.cell = null;
    for (const work of process.work.values()) this.#stage.world.orphan(work);
    process.work.clear();
  }

  /** Another process takes the run away; this one notices by its commit that is under way. */
  async #rob(process: Process): Promise<void> {
    if (process.pending === null || process.pending.applied) return;
    this.#stage.tell?.(`${this.#stage.now} it is robbed`);
    process.robbed = true;
    this.#stage.story.crashes += 1;
    this.#loseWorld(process);
    await this.#adopt();
  }

  letGo(process: Process): void {
    const { record, now } = this.#stage;
    process.alive = false;
    this.#process = null;
    if (record.dueAt === null) return;
    this.#stage.later(Math.max(0, record.dueAt - now), () => {
      if (this.#process === null) this.#adoptLater(0);
    });
  }

  // ---------------------------------------------------------------------------------------------------------- mishaps

  async #mishap(): Promise<void> {
    const process = this.#process;
    if (process === null || !process.alive) return;
    const { random, story } = this.#stage;
    this.#stage.mishapsLeft -= 1;
    const draw = story.fragile ? killWorker : random.below(100);
    if (draw < 40) await this.die(process);
    else if (draw <= killWorker) this.#killWorker(process);
    else if (draw < 72) await this.#rob(process);
    else if (draw < 85) await process.feed({ kind: "contended", others: random.percent(70) });
    else if (draw < 92) await this.#drain(process);
    else if (draw < 96) {
      story.cancelled = true;
      const reason = random.pick(["caller", "revoked", "superseded"] as const);
      await process.feed({ kind: "cancel", by: "somebody", reason });
    } else await process.feed({ kind: "outcome", position: 10_000, outcome: text("stray") });
  }

  #killWorker({ cell }: Process): void {
    if (cell === null || cell.ended) return;
    this.#stage.story.failures += 1;
    cell.end(activationEnd("worker_lost", "signal"));
  }

  /** The service goes down in an orderly way, and comes back. */
  async #drain(process: Process): Promise<void> {
    await process.feed({ kind: "drain" });
    this.#stage.later(this.#stage.random.between(10, 3_000), () => this.die(process));
  }
}
