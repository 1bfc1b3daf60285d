/**
 * The runner: drives the runs that it is given, each by an actor of its own, from wherever they stand to their ends. Made by
 * the service; `flowcell test` makes one in virtual time.
 *
 * A run that only waits has no actor: the runner keeps its id and when it is due, and makes an actor when the time or
 * something for the run comes. All alarms are on one timer. Activations take turns: at most `activationsMost` are begun and
 * not over, the rest wait in the order in which they asked, and those that are blocked are told that others wait.
 *
 * Kept true: a run is driven by one actor at a time; when the store has failed nothing is tried any more; after `close`
 * nothing is left running that this runner began.
 */

import type { Store } from "@flowcell/journal";
import type { CallOutcome } from "@flowcell/protocol";
import { recordedBytesUsual, timersUsual } from "../machine/bounds.js";
import type { RunEvent } from "../machine/types.js";
import type { CellPool, Runner, RunnerHooks } from "../ports.js";
import { Actor } from "./actor.js";
import { Alarm, Alarms } from "./alarms.js";
import type { EngineContext, RunnerSettings, Seat } from "./context.js";

export interface RunnerOptions extends Partial<RunnerSettings> {
  readonly store: Store;
  readonly pool: CellPool;
  readonly hooks: RunnerHooks;
  /** Of the engine in the workers. */
  readonly fingerprint: string;
  /** Unlike that of any other runner, also of one that was there before. */
  readonly owner: string;
  /** Activations at the same time, those included that wait for a worker. Default 64. */
  readonly activationsMost?: number;
  /** Runs at the same time, those included that sleep. Default 100,000. */
  readonly runsMost?: number;
  readonly now?: () => number;
}

/** Runs that are read from the store at the same time. */
const loadsMost = 32;
/** How often is looked whether others wait for a worker. */
const contentionLookMs = 500;

/** A run without an actor. */
interface Sleeper {
  readonly generation: number;
  readonly alarm: Alarm;
}

export function createRunner(options: RunnerOptions): Runner {
  return new EngineRunner(options);
}

class EngineRunner implements Runner, EngineContext {
  readonly store: Store;
  readonly pool: CellPool;
  readonly hooks: RunnerHooks;
  readonly settings: RunnerSettings;
  readonly alarms: Alarms;
  readonly fingerprint: string;
  readonly owner: string;
  draining = false;
  contended = false;

  readonly #now: () => number;
  readonly #activationsMost: number;
  readonly #runsMost: number;
  readonly #actors = new Map<string, Actor>();
  readonly #sleepers = new Map<string, Sleeper>();
  /** Actors that are over and whose last promises are not. */
  readonly #leaving = new Set<Promise<void>>();

  readonly #toLoad: Actor[] = [];
  #loading = 0;
  /** Who waits for a place, in their order. */
  readonly #waiting = new Set<Seat>();
  #places = 0;
  readonly #contention = new Alarm(() => this.#lookForContention());

  #closed = false;
  #failedOnce = false;
  #drained: (() => void) | null = null;

  constructor(options: RunnerOptions) {
    this.store = options.store;
    this.pool = options.pool;
    this.hooks = options.hooks;
    this.fingerprint = options.fingerprint;
    this.owner = options.owner;
    this.settings = Object.freeze({
      blockedMostMs: options.blockedMostMs ?? 10_000,
      suspendAfterMs: options.suspendAfterMs ?? 1_000,
      failuresMost: options.failuresMost ?? 5,
      recordedBytesMost: options.recordedBytesMost ?? recordedBytesUsual,
      timersMost: options.timersMost ?? timersUsual,
      virtualTime: options.virtualTime ?? false,
    });
    this.#now = options.now ?? Date.now;
    this.#activationsMost = positive("activationsMost", options.activationsMost ?? 64);
    this.#runsMost = positive("runsMost", options.runsMost ?? 100_000);
    this.alarms = new Alarms(this.#now);
  }

  now(): number {
    return this.#now();
  }

  // ------------------------------------------------------------------------------------------------------- for the service

  get active(): number {
    return this.#actors.size;
  }

  adopt(runId: string): void {
    if (this.#closed || this.draining) return;
    if (this.#actors.has(runId) || this.#sleepers.has(runId))
      throw new Error(`the run ${runId} is driven here already`);
    if (this.#actors.size + this.#sleepers.size >= this.#runsMost)
      throw new RangeError(`more runs than runsMost (${this.#runsMost})`);
    this.#load(new Actor(this, runId, null));
  }

  cancel(runId: string, by: string, reason: "caller" | "revoked" | "superseded"): boolean {
    return this.#call(runId, { kind: "cancel", by, reason });
  }

  signalled(runId: string, name: string): void {
    this.#call(runId, { kind: "signalled", name });
  }

  waitDone(runId: string, position: number, outcome: CallOutcome): boolean {
    return this.#call(runId, { kind: "waitDone", position, outcome });
  }

  reconcile(
    runId: string,
    position: number,
    decision: (RunEvent & { kind: "reconcile" })["decision"],
  ): boolean {
    return this.#call(runId, { kind: "reconcile", position, decision });
  }

  async drain(patienceMs: number): Promise<void> {
    if (this.#closed) return;
    this.draining = true;
    for (const { alarm } of this.#sleepers.values()) this.alarms.clear(alarm);
    this.#waiting.clear();
    this.#toLoad.length = 0;
    for (const actor of [...this.#actors.values()]) {
      if (actor.loaded) actor.post({ kind: "drain" });
      else this.#stopActor(actor, "the service is closing");
    }
    await new Promise<void>((resolve) => {
      const patience = setTimeout(resolve, patienceMs);
      this.#drained = () => {
        clearTimeout(patience);
        resolve();
      };
      this.changed();
    });
    this.#drained = null;
    for (const actor of [...this.#actors.values()]) this.#stopActor(actor, "the service is closing");
    await this.#settled();
  }

  async close(): Promise<void> {
    this.#stopAll("the service is closing");
    await this.#settled();
  }

  /** Hands an event to the run's actor, waking the run if it sleeps. False when it is not driven here. */
  #call(runId: string, event: RunEvent): boolean {
    const actor = this.#actors.get(runId);
    if (actor !== undefined) return actor.call(event);
    const sleeper = this.#sleepers.get(runId);
    if (sleeper === undefined || this.draining) return false;
    this.#awaken(runId, sleeper, event);
    return true;
  }

  // --------------------------------------------------------------------------------------------------------- for the actors

  sleep(actor: Actor, generation: number, dueAt: number | null): void {
    const { runId } = actor;
    this.gone(actor);
    if (this.#closed) return;
    const alarm = new Alarm(() => this.#awaken(runId, sleeper, null));
    const sleeper: Sleeper = { generation, alarm };
    this.#sleepers.set(runId, sleeper);
    if (dueAt !== null && !this.draining) this.alarms.set(alarm, dueAt);
  }

  #awaken(runId: string, { generation, alarm }: Sleeper, event: RunEvent | null): void {
    this.alarms.clear(alarm);
    this.#sleepers.delete(runId);
    const actor = new Actor(this, runId, generation);
    actor.call(event);
    this.#load(actor);
  }

  #load(actor: Actor): void {
    this.#actors.set(actor.runId, actor);
    this.#toLoad.push(actor);
    this.#loadNext();
  }

  #loadNext(): void {
    while (this.#loading < loadsMost) {
      const actor = this.#toLoad.shift();
      if (actor === undefined) return;
      this.#loading += 1;
      void actor.load().then(() => {
        this.#loading -= 1;
        this.#loadNext();
      });
    }
  }

  gone(actor: Actor): void {
    if (this.#actors.get(actor.runId) === actor) this.#actors.delete(actor.runId);
    const leaving = actor.settled().then(() => {
      this.#leaving.delete(leaving);
    });
    this.#leaving.add(leaving);
    this.changed();
  }

  wantPlace(seat: Seat): void {
    if (this.#closed || this.draining) return;
    this.#waiting.add(seat);
    this.#givePlaces();
  }

  leavePlace(): void {
    this.#places -= 1;
    this.#givePlaces();
  }

  forgetPlace(seat: Seat): void {
    this.#waiting.delete(seat);
  }

  #givePlaces(): void {
    for (const seat of this.#waiting) {
      if (this.#places >= this.#activationsMost) break;
      this.#waiting.delete(seat);
      this.#places += 1;
      seat.go();
    }
    if (this.#places > 0 && this.#contention.place < 0)
      this.alarms.set(this.#contention, this.#now() + contentionLookMs);
  }

  #lookForContention(): void {
    if (this.#places > 0) this.alarms.set(this.#contention, this.#now() + contentionLookMs);
    const others = this.#waiting.size > 0 || this.pool.health().waiting > 0;
    if (others === this.contended) return;
    this.contended = others;
    for (const actor of [...this.#actors.values()])
      if (actor.loaded) actor.post({ kind: "contended", others });
  }

  changed(): void {
    if (this.#drained === null) return;
    for (const actor of this.#actors.values()) if (!actor.quiet) return;
    this.#drained();
  }

  storeFailed(error: unknown): void {
    this.#stopAll("the store failed");
    if (this.#failedOnce) return;
    this.#failedOnce = true;
    this.hooks.storeFailed(error);
  }

  failed(runId: string, error: unknown): void {
    this.hooks.failed(runId, error);
  }

  // ---------------------------------------------------------------------------------------------------------------- the end

  #stopActor(actor: Actor, why: string): void {
    actor.stop(why);
    this.gone(actor);
  }

  #stopAll(why: string): void {
    this.#closed = true;
    this.#waiting.clear();
    this.#toLoad.length = 0;
    for (const actor of [...this.#actors.values()]) this.#stopActor(actor, why);
    this.#sleepers.clear();
    this.alarms.clearAll();
    this.#drained?.();
  }

  async #settled(): Promise<void> {
    while (this.#leaving.size > 0) await Promise.all(this.#leaving);
  }
}

function positive(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new RangeError(`${name} must be a whole number from 1, not ${value}`);
}
