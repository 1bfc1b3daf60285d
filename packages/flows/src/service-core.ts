/**
 * The moving parts of the service and how they are joined: the catalog says what may run, `Admission` and `Starter` when,
 * the runner drives it, and what a run's end sets going comes back here. service.ts makes one and puts the operations on it.
 *
 * Kept true: a run is adopted by the runner once, when its turn has come or because it had begun before; places are counted
 * by what was committed, not by what was asked; every promise that is begun here is awaited by `close`; when the store has
 * failed nothing is begun any more.
 */

import { randomBytes } from "node:crypto";
import {
  type NewRun,
  type OpenWait,
  type RunRow,
  type Store,
  StoreFailure,
  type Unit,
} from "@flowcell/journal";
import { Catalog, type FlowEntry } from "./catalog/catalog.js";
import { audit } from "./catalog/decisions.js";
import { checkedPool } from "./catalog/result-check.js";
import { commit } from "./commit.js";
import { Alarm, Alarms } from "./engine/alarms.js";
import { createRunner, type RunnerOptions, runOutcome } from "./engine/index.js";
import { type Landmark, Landmarks } from "./landmarks.js";
import { observedStore } from "./observed-store.js";
import {
  type CellPool,
  type FlowServiceOptions,
  OperationError,
  type Runner,
  type RunnerHooks,
} from "./ports.js";
import { Admission, type PlaceState } from "./schedule/admission.js";
import { countViolation, retry } from "./schedule/after-run.js";
import { Starter } from "./schedule/starter.js";
import { Triggers } from "./schedule/triggers.js";
import { endUndriven, type UndrivenEnd } from "./schedule/undriven.js";
import { hostPorts } from "./service-ports.js";
import { Tasks } from "./tasks.js";
import { RunWaits } from "./waits.js";
import { Watchers } from "./watchers.js";

/** Tests bring a runner of their own. */
export interface ServiceParts {
  readonly createRunner: (options: RunnerOptions) => Runner;
}

export const systemParts: ServiceParts = { createRunner };

export type CancelReason = "caller" | "revoked" | "superseded";

/** How long an operation waits for its commit before it says that the service is busy. */
const commitMostMs = 30_000;
/** When cron times, due runs or retention could not be served now. */
const againMs = 5_000;
const bugCharsMax = 4_000;
const storeBytesUsual = 4 * 1024 * 1024 * 1024;

export class ServiceCore {
  readonly store: Store;
  readonly catalog: Catalog;
  readonly admission: Admission;
  readonly starter: Starter;
  readonly triggers: Triggers;
  readonly runner: Runner;
  /** Holds results to the manifests that declare them. */
  readonly pool: CellPool;
  readonly landmarks = new Landmarks();
  readonly watchers = new Watchers();
  readonly drives: NonNullable<FlowServiceOptions["drives"]>;
  readonly storeBytesMost: number;
  readonly alarms: Alarms;
  readonly #waits = new RunWaits();
  /** Unfinished runs by `flow hash`. */
  readonly #inUse = new Map<string, number>();
  readonly #adopted = new Set<string>();
  /** Runs that have not begun and are being ended. */
  readonly #ending = new Map<string, Promise<boolean>>();
  readonly #tasks = new Tasks();
  readonly #wake = new Alarm(() => this.pump());
  #state: "opening" | "open" | "draining" | "closed" = "opening";
  #failure: { readonly error: unknown } | null = null;
  #fail: (error: unknown) => void = () => undefined;
  readonly failed: Promise<unknown>;

  constructor(options: FlowServiceOptions, parts: ServiceParts, entries: readonly FlowEntry[]) {
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.drives = options.drives ?? "all";
    this.store = observedStore(options.store, (unit) => this.#committed(unit));
    this.catalog = new Catalog(
      options,
      hostPorts(() => this),
      entries,
    );
    this.alarms = new Alarms(this.catalog.now);
    this.storeBytesMost = options.storeBytesMost ?? storeBytesUsual;
    this.admission = new Admission(options.activeMost);
    this.starter = new Starter(this.catalog, this.admission, {
      end: (runId, end) => this.#endWaiting(runId, end).then(() => undefined),
      supersede: (runId) => this.own(this.cancel(runId, "concurrency.onLimit", "superseded")),
      pump: () => this.pump(),
      counted: (run) => this.count(run, 1),
    });
    this.triggers = new Triggers(this.catalog, this.starter);
    this.pool = checkedPool(options.pool, this.catalog);
    this.runner = parts.createRunner({
      store: this.store,
      pool: this.pool,
      hooks: this.#hooks(),
      fingerprint: options.fingerprint,
      owner: `service_${randomBytes(12).toString("base64url")}`,
      now: this.catalog.now,
    });
  }

  /** What an earlier process left is taken up: service-open.ts says in which order. */
  takeUp(unfinished: readonly RunRow[], waits: readonly OpenWait[]): void {
    this.#waits.fill(waits);
    this.#state = "open";
    if (this.drives === "nothing") return;
    for (const run of unfinished) if (hasBegun(run)) this.#adopt(run.runId);
  }

  // -------------------------------------------------------------------------------------------------------------- driving

  /** Begins whatever may begin now, and sets the alarm for what may later. */
  pump(): void {
    if (this.#state !== "open" || this.drives === "nothing" || this.#failure !== null) return;
    const now = this.catalog.now();
    for (const runId of this.admission.next(now)) this.#adopt(runId);
    const times = [this.admission.nextDue(now)];
    if (this.drives === "all") {
      const fire = this.triggers.nextFireAt();
      if (fire !== null && fire <= now) this.own(this.#fireDue());
      else times.push(fire);
    }
    const next = Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY));
    if (next === Number.POSITIVE_INFINITY) this.alarms.clear(this.#wake);
    else this.alarms.set(this.#wake, next);
  }

  async #fireDue(): Promise<void> {
    try {
      await this.triggers.fireDue();
    } catch (error) {
      this.alarms.set(this.#wake, this.catalog.now() + againMs);
      throw error;
    }
    this.pump();
  }

  #adopt(runId: string): void {
    this.#adopted.add(runId);
    try {
      this.runner.adopt(runId);
    } catch (error) {
      // It stays as it is in the store, and keeps its place until the service is opened again.
      this.bug(error, runId);
    }
  }

  /**
   * The run is driven from here on, whatever its turn: somebody has something for it. Throws OperationError when nothing is
   * driven any more.
   */
  drive(runId: string): void {
    this.mustBeOpen();
    if (!this.#adopted.has(runId)) this.#adopt(runId);
  }

  /** False when the run is finished already, or not there. */
  async cancel(runId: string, by: string, reason: CancelReason): Promise<boolean> {
    this.mustBeOpen();
    if (!this.#adopted.has(runId)) {
      const message = `the run was cancelled by ${by}`;
      if (await this.#endWaiting(runId, { status: "cancelled", reason, message, by })) return true;
      const run = await this.store.run(runId);
      if (run === null || run.state === "finished") return false;
      this.drive(runId);
    }
    return await this.recorded(runId, "end", () => this.runner.cancel(runId, by, reason));
  }

  /**
   * Hands something to the runner and resolves when it is on disk: true, or false when the runner did not take it or the run
   * ended without it. `hand` may look at the run first: what is recorded after its look is not missed. Throws OperationError
   * when that takes long.
   */
  async recorded(
    runId: string,
    landmark: Landmark,
    hand: () => boolean | Promise<boolean>,
  ): Promise<boolean> {
    const { arrival, leave } = this.landmarks.expect(runId, landmark, commitMostMs);
    let isTaken = false;
    try {
      isTaken = await hand();
    } finally {
      if (!isTaken) leave();
    }
    if (!isTaken) return false;
    const how = await arrival;
    if (this.#failure !== null) throw this.#failure.error;
    if (how === "gone") return false;
    if (how === "passed" && this.#state !== "closed") return true;
    throw new OperationError(
      "unavailable",
      `run ${runId}: this is not recorded yet; see: flowcell runs ${runId}`,
    );
  }

  /** False when the run has begun, is finished, or is not there. Asked again while it ends, the first end is everybody's. */
  async #endWaiting(runId: string, end: UndrivenEnd): Promise<boolean> {
    const under = this.#ending.get(runId);
    if (under !== undefined) return await under;
    const ending = this.#endNow(runId, end);
    this.#ending.set(runId, ending);
    try {
      return await ending;
    } finally {
      this.#ending.delete(runId);
    }
  }

  async #endNow(runId: string, end: UndrivenEnd): Promise<boolean> {
    const state = this.admission.state(runId);
    if (state !== undefined && state !== "waiting") return false;
    // Out of the order first, so that it does not begin meanwhile.
    this.admission.remove(runId);
    const run = await endUndriven(this.store, runId, end, this.catalog.now());
    if (run === null) return false;
    this.#finished(run);
    return true;
  }

  // ---------------------------------------------------------------------------------------------------- what runs set going

  #hooks(): RunnerHooks {
    return {
      gate: (run) => this.catalog.gate(run),
      finished: (run) => this.#finished(run),
      suspended: (run) => this.watchers.notify(run),
      storeFailed: (error) => this.storeFailed(error),
      failed: (runId, error) => this.bug(error, runId),
      gone: (runId) => this.#gone(runId),
    };
  }

  /** Whoever handed something to it looks at what became of it. */
  #gone(runId: string): void {
    this.#adopted.delete(runId);
    this.landmarks.gone(runId);
  }

  #finished(run: RunRow): void {
    const { runId } = run;
    this.#adopted.delete(runId);
    this.admission.remove(runId);
    this.count(run, -1);
    const waiters = this.#waits.waitersOf(runId);
    this.#waits.finished(runId);
    if (waiters.length > 0) {
      const outcome = runOutcome(run);
      for (const waiter of waiters) this.runner.waitDone(waiter.runId, waiter.position, outcome);
    }
    this.watchers.notify(run);
    if (this.drives !== "nothing" && this.#state === "open") this.own(this.#after(run));
    this.pump();
  }

  async #after(run: RunRow): Promise<void> {
    const disabled = await this.catalog.alone(run.flow, () => countViolation(this.catalog, run));
    if (disabled) this.admission.hold(run.flow, true);
    await retry(this.catalog, this.starter, run);
  }

  #committed(unit: Unit): void {
    this.#waits.observe(unit);
    this.landmarks.observe(unit);
    const { fence, operations } = unit;
    if (fence === undefined) return;
    for (const operation of operations) {
      if (operation.kind !== "run" || operation.patch.state === undefined) continue;
      const { state, status } = operation.patch;
      if (state === "finished") continue;
      this.admission.set(fence.runId, placeOfState(state, status ?? null));
      if (state === "suspended") this.pump();
    }
  }

  /** Unfinished runs of a version come and go. */
  count(run: Pick<NewRun, "flow" | "versionHash">, by: 1 | -1): void {
    const key = `${run.flow} ${run.versionHash}`;
    const runs = (this.#inUse.get(key) ?? 0) + by;
    if (runs > 0) {
      this.#inUse.set(key, runs);
      return;
    }
    this.#inUse.delete(key);
    this.catalog.release(run.flow, run.versionHash);
  }

  /** A version takes no new runs any more; when it has none left, it lets go of what it holds. */
  released(flow: string, hash: string): void {
    if (!this.#inUse.has(`${flow} ${hash}`)) this.catalog.release(flow, hash);
  }

  // -------------------------------------------------------------------------------------------------------------- failures

  /** Something that is under way until it is over, and that nobody else waits for. */
  own(task: Promise<unknown>): void {
    this.#tasks.add(task, (error) => {
      // What is refused because the service goes down is found by the next one.
      if (error instanceof OperationError && this.#state !== "open") return;
      this.bug(error, null);
    });
  }

  /** An exception that nobody expects goes into the audit log; one of the store ends the service. */
  bug(error: unknown, runId: string | null): void {
    if (error instanceof StoreFailure) {
      this.storeFailed(error);
      return;
    }
    if (this.#failure !== null || this.#state === "closed") return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const row = audit(
      this.catalog.now(),
      "flowcell",
      "flowcell.bug",
      null,
      text.slice(0, bugCharsMax),
      runId,
    );
    this.#tasks.add(commit(this.store, [row]), (failure) => {
      if (failure instanceof StoreFailure) this.storeFailed(failure);
    });
  }

  storeFailed(error: unknown): void {
    if (this.#failure !== null || this.#state === "closed") return;
    this.#failure = { error };
    this.alarms.clearAll();
    this.landmarks.release();
    this.watchers.fail(error);
    this.#fail(error);
  }

  mustBeOpen(): void {
    if (this.#failure !== null) throw this.#failure.error;
    if (this.#state === "open") return;
    const why = this.#state === "draining" ? "is going down" : "is not open";
    throw new OperationError("unavailable", `the service ${why}: it takes no new work`);
  }

  // --------------------------------------------------------------------------------------------------------------- the end

  async drain(patienceMs: number): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "draining";
    this.alarms.clearAll();
    await this.runner.drain(patienceMs);
    await this.#tasks.settled();
  }

  async close(): Promise<void> {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.alarms.clearAll();
    await this.runner.close();
    this.landmarks.release();
    this.watchers.close();
    await this.#tasks.settled();
    await this.catalog.close();
  }
}

/** One that has not may still be ended without a trace of work. */
export function hasBegun(run: RunRow): boolean {
  return run.state !== "pending" || run.startedAt !== null || run.activations > 0;
}

/** Of a run that has begun and is not finished. */
export function placeOfState(
  state: "pending" | "running" | "suspended",
  status: RunRow["status"],
): Exclude<PlaceState, "waiting"> {
  if (state !== "suspended") return "active";
  return status === "needs_reconcile" ? "stuck" : "suspended";
}
