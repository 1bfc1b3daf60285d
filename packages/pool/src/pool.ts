/**
 * The supervisor: starts workers, leases each to one flow for life, lets activations wait in bounded fair queues, retires
 * and kills workers, counts what happened.
 *
 * Used by the command line, codemode and (through an interface of their own) flows. It knows nothing of manifests,
 * journals or host functions.
 *
 * Who gets a worker: the flow's own idle worker, else a spare, else a new one; with all places taken, an idle worker of
 * another flow ends to make room. The flows that wait are served in rotation. A worker that just finished goes on with its
 * own flow unless another flow has waited `turnMs`: giving the place away costs a process start.
 *
 * Kept true: a process never serves two flows; live processes never exceed `workersMax`; nothing is sent to a worker before
 * its Welcome was accepted; every request is answered once; a waiter that gave up never starts; when nothing runs and
 * nobody waits, nothing here keeps the Node process alive; after `close` there is no process, timer or descriptor.
 */
import { Activation } from "./activation.js";
import { type ProcessExit, StartError, type WorkerBackend } from "./backend.js";
import { StartBackoff } from "./backoff.js";
import { type Clock, KeepAlive, systemClock } from "./clock.js";
import { Counters } from "./counters.js";
import { Deadline, Deadlines } from "./deadlines.js";
import { deathKind, describeExit } from "./death.js";
import {
  type PoolEvent,
  type PoolHealth,
  type PoolOptions,
  type ResolvedOptions,
  resolveOptions,
} from "./pool-options.js";
import { requestProblem } from "./request.js";
import type { ActivationRequest, ActivationResult, Verdict } from "./types.js";
import { WaitingRoom } from "./waiting-room.js";
import { type Refusal, Worker, type WorkerOwner, type WorkerState } from "./worker.js";

/** A waiting flow is passed over for at most this long by flows whose own worker is at hand. */
const turnMs = 20;

/** How long after a spare was taken its replacement is started, unless somebody waits. */
const refillDelayMs = 2;
/** Failed starts in a row after which nobody waits for the next one any more. */
const repeatedFailures = 3;
/** Scripts shorter than this are encoded anew each time. */
const scriptKeptChars = 512;

interface FlowState<C> {
  readonly flow: string;
  /** The one that became idle last is the first to serve: its pages are warm, and the others can grow old. */
  readonly idle: Worker<C>[];
  /** Live workers bound to the flow. */
  workers: number;
  script: string;
  scriptBytes: Buffer;
}

export class Pool<Confinement> implements WorkerOwner<Confinement> {
  readonly #backend: WorkerBackend<Confinement>;
  readonly #clock: Clock;
  readonly #options: ResolvedOptions;
  readonly #onEvent: (event: PoolEvent) => void;
  readonly #deadlines: Deadlines;
  readonly #keepAlive = new KeepAlive();
  readonly #backoff = new StartBackoff();
  readonly #room: WaitingRoom<Activation<Confinement>>;
  readonly #workers = new Set<Worker<Confinement>>();
  readonly #spares: Worker<Confinement>[] = [];
  readonly #flows = new Map<string, FlowState<Confinement>>();
  readonly #counters = new Counters();
  readonly #retry = new Deadline(() => this.#pump());
  readonly #inspection = new Deadline(() => this.#inspect());
  readonly #onExit = (): void => this.#killAll();
  readonly #cancelled = (activation: Activation<Confinement>): void => this.#cancel(activation);
  #starting = 0;
  #dying = 0;
  #lastRefusal: Refusal | null = null;
  #pumping = false;
  #pumpAgain = false;
  #activations = 0;
  #startedCount = 0;
  #retired = 0;
  #closed = false;
  #closing: Promise<void> | null = null;
  #allGone: (() => void) | null = null;
  #readyWaiters: ((refusal: Refusal | null) => void)[] = [];

  constructor(backend: WorkerBackend<Confinement>, options: PoolOptions, clock: Clock = systemClock) {
    this.#backend = backend;
    this.#clock = clock;
    this.#options = resolveOptions(options);
    this.#onEvent = options.onEvent ?? (() => {});
    this.#deadlines = new Deadlines(clock);
    this.#room = new WaitingRoom({
      queueMax: this.#options.queueMax,
      queueTotalMax: this.#options.queueTotalMax,
      deadlines: this.#deadlines,
      onHead: () => this.#pump(),
    });
    livePools.add(this.#onExit);
    this.#pump();
  }

  /** Runs a script. Never rejects: whatever happened is in the result. */
  activate(request: ActivationRequest): Promise<ActivationResult<Confinement>> {
    return new Promise((resolve) => {
      const answer = (result: ActivationResult<Confinement>): void => {
        if (result.reason !== undefined) this.#counters.count(`outcome:${result.status}/${result.reason}`);
        this.#keepAlive.release();
        resolve(result);
      };
      const deadlineMs = request.queueDeadlineMs ?? this.#options.queueDeadlineMs;
      const dueAt = this.#clock.monotonicMs() + deadlineMs;
      const activation = new Activation<Confinement>(request, this.#clock, dueAt, answer, this.#cancelled);
      this.#keepAlive.hold();
      this.#admit(activation);
    });
  }

  /** Resolves when the spares are ready: null, or why a start was refused meanwhile. */
  ready(): Promise<Refusal | null> {
    if (this.#closed) return Promise.resolve(null);
    if (this.#spares.length >= this.#options.spares) return Promise.resolve(null);
    this.#keepAlive.hold();
    return new Promise((resolve) => {
      this.#readyWaiters.push((refusal) => {
        this.#keepAlive.release();
        resolve(refusal);
      });
    });
  }

  /** Ends everything: waiters and running activations are answered `cancelled`, processes are killed and collected. */
  close(): Promise<void> {
    // First of all: what is answered now may make somebody ask again.
    this.#closed = true;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  health(): PoolHealth {
    const now = this.#clock.monotonicMs();
    let running = 0;
    let idle = 0;
    const flows: Record<string, { workers: number; idle: number; waiting: number }> = Object.create(null);
    for (const worker of this.#workers) {
      if (worker.state === "running") running += 1;
      if (worker.state === "idle") idle += 1;
    }
    for (const state of this.#flows.values()) {
      flows[state.flow] = {
        workers: state.workers,
        idle: state.idle.length,
        waiting: this.#room.sizeOf(state.flow),
      };
    }
    for (const { flow } of this.#room.all()) {
      flows[flow] ??= { workers: 0, idle: 0, waiting: this.#room.sizeOf(flow) };
    }
    return {
      workers: {
        total: this.#workers.size,
        starting: this.#starting,
        spare: this.#spares.length,
        idle,
        running,
        dying: this.#dying,
      },
      waiting: this.#room.size,
      flows,
      activations: this.#activations,
      started: this.#startedCount,
      retired: this.#retired,
      startsRefused: this.#counters.under("start:"),
      violations: this.#counters.under("violation:"),
      outcomes: this.#counters.under("outcome:"),
      deaths: this.#counters.under("death:"),
      deathsByFlow: this.#counters.flows(),
      starts: {
        failuresInARow: this.#backoff.failures,
        retryInMs: Math.max(0, Math.ceil(this.#backoff.notBefore - now)),
        lastRefusal: this.#lastRefusal,
      },
      closed: this.#closed,
    };
  }

  // --------------------------------------------------------------------------------------------------------------- admission

  #admit(activation: Activation<Confinement>): void {
    const { request } = activation;
    if (this.#closed) {
      activation.refuse("closed");
      return;
    }
    const wrong = checkedRequest(request);
    if (wrong !== null) {
      activation.refuseWith(wrong);
      return;
    }
    if (request.signal?.aborted === true) {
      activation.refuse("cancelled");
      return;
    }
    if (this.#room.size === 0) {
      const worker = this.#available(activation);
      if (worker !== undefined) {
        const spare = worker.flow === null;
        this.#begin(worker, activation);
        // Starting a process holds up the event loop; with nobody waiting it can wait for a short script to end first.
        if (spare) this.#retryAt(this.#clock.monotonicMs() + refillDelayMs);
        return;
      }
    }
    const entered = this.#room.enter(activation);
    if (entered === "entered") {
      this.#pump();
      return;
    }
    const whose =
      entered === "flow_full"
        ? `flow's queue of ${this.#options.queueMax}`
        : `pool's queue of ${this.#options.queueTotalMax}`;
    activation.refuseWith({
      status: "overloaded",
      reason: "queue_full",
      message: `the ${whose} waiting activations is full`,
    });
  }

  #cancel(activation: Activation<Confinement>): void {
    const message = "the caller cancelled";
    if (activation.running) activation.condemn({ status: "cancelled", reason: "caller", message });
    else this.#room.leave(activation, "cancelled");
  }

  /** The worker that may serve now, taken out of its list. */
  #available(activation: Activation<Confinement>): Worker<Confinement> | undefined {
    if (!activation.fresh) {
      const own = this.#flows.get(activation.flow)?.idle.pop();
      if (own !== undefined) return own;
    }
    return this.#spares.pop();
  }

  #begin(worker: Worker<Confinement>, activation: Activation<Confinement>): void {
    const { flow, request } = activation;
    let state = this.#flows.get(flow);
    if (state === undefined) {
      state = { flow, idle: [], workers: 0, script: "", scriptBytes: Buffer.alloc(0) };
      this.#flows.set(flow, state);
    }
    if (worker.flow === null) {
      worker.bind(flow);
      state.workers += 1;
    }
    this.#activations += 1;
    worker.run(activation, scriptBytes(state, request.script));
  }

  // ------------------------------------------------------------------------------------------------------------- the schedule

  /** Gives workers to waiters, in rotation, then starts and ends processes as the rest demands. */
  #pump(): void {
    if (this.#pumping) {
      this.#pumpAgain = true;
      return;
    }
    this.#pumping = true;
    try {
      do {
        this.#pumpAgain = false;
        this.#serve();
        this.#startMore();
      } while (this.#pumpAgain);
    } finally {
      this.#pumping = false;
    }
    this.#announceReady();
  }

  #serve(): void {
    const now = this.#clock.monotonicMs();
    let unmet = 0;
    for (const activation of this.#room.heads()) {
      const worker = this.#available(activation);
      if (worker !== undefined) {
        this.#room.served(activation);
        this.#begin(worker, activation);
        continue;
      }
      unmet += 1;
      const coming =
        this.#starting + this.#dying + Math.max(0, this.#options.workersMax - this.#workers.size);
      if (unmet > coming) this.#makeRoom(activation, now);
    }
  }

  /**
   * Ends the worker that was idle longest, of another flow, so that a place becomes free. A flow that has a worker of its
   * own takes only what was idle for a turn: its worker is likely to be free sooner than a process starts, and two busy
   * flows must not take each other's workers between two activations.
   */
  #makeRoom(activation: Activation<Confinement>, now: number): void {
    const waited = now - activation.enqueuedAt >= turnMs;
    const hasOwn = !activation.fresh && (this.#flows.get(activation.flow)?.workers ?? 0) > 0;
    const idleBefore = hasOwn ? now - turnMs : now;
    let oldest: Worker<Confinement> | undefined;
    for (const state of this.#flows.values()) {
      // A single-use activation has no use for its own flow's idle workers either.
      if (state.flow === activation.flow && !activation.fresh) continue;
      if (!waited && (hasOwn || this.#room.sizeOf(state.flow) > 0)) continue;
      for (const worker of state.idle) {
        if (worker.idleSince > idleBefore) continue;
        if (oldest === undefined || worker.idleSince < oldest.idleSince) oldest = worker;
      }
    }
    if (oldest !== undefined) this.#retire(oldest);
    else if (!waited) this.#retryAt(activation.enqueuedAt + turnMs);
    else if (hasOwn) this.#retryAt(now + turnMs);
  }

  #startMore(): void {
    if (this.#closed) return;
    const { spares, workersMax, startingMax } = this.#options;
    const wanted = (): boolean =>
      this.#starting < startingMax &&
      this.#workers.size < workersMax &&
      this.#starting + this.#spares.length < spares + this.#room.size;
    if (!wanted()) return;
    const now = this.#clock.monotonicMs();
    if (now < this.#backoff.notBefore) {
      this.#refuseTooLate();
      this.#retryAt(this.#backoff.notBefore);
      return;
    }
    while (wanted()) if (!this.#startOne()) return;
  }

  #retryAt(at: number): void {
    if (at < this.#retry.dueAt) this.#deadlines.set(this.#retry, at);
  }

  #startOne(): boolean {
    let worker: Worker<Confinement>;
    try {
      worker = new Worker(this.#backend, this, this.#clock, this.#deadlines, this.#options);
    } catch (error) {
      const refusal: Refusal =
        error instanceof StartError
          ? { reason: "spawn_failed", fact: error.fact, message: error.message }
          : { reason: "spawn_failed", fact: "exception", message: String(error) };
      this.#startFailed(null, refusal);
      return false;
    }
    this.#startedCount += 1;
    this.#starting += 1;
    this.#workers.add(worker);
    this.#planInspection();
    return true;
  }

  /** Too many failures in a row, or too late for them: those who wait for a start alone need not wait. */
  #refuseTooLate(): void {
    const last = this.#lastRefusal;
    if (last === null || this.#room.size === 0) return;
    const repeatedly = this.#backoff.failures >= repeatedFailures;
    for (const activation of this.#hopeless()) {
      if (!repeatedly && activation.dueAt >= this.#backoff.notBefore) continue;
      this.#room.served(activation);
      const message = `workers failed to start ${this.#backoff.failures} times in a row and the next try is due later: ${last.message}`;
      activation.refuseWith({
        status: "sandbox_unavailable",
        reason: "backing_off",
        fact: last.fact,
        message,
      });
    }
  }

  /** Waiters whom only a start can serve, while none is under way. */
  #hopeless(): Activation<Confinement>[] {
    if (this.#starting > 0 || this.#spares.length > 0) return [];
    return this.#room
      .all()
      .filter((activation) => activation.fresh || (this.#flows.get(activation.flow)?.workers ?? 0) === 0);
  }

  #startFailed(pid: number | null, refusal: Refusal): void {
    this.#lastRefusal = refusal;
    this.#counters.count(`start:${refusal.reason}/${refusal.fact}`);
    const now = this.#clock.monotonicMs();
    this.#backoff.failed(now);
    this.#onEvent({
      kind: "start_refused",
      pid,
      refusal,
      retryInMs: Math.ceil(this.#backoff.notBefore - now),
    });
    for (const activation of this.#hopeless()) {
      this.#room.served(activation);
      activation.refuseWith({ status: "sandbox_unavailable", ...refusal });
    }
    for (const waiter of this.#readyWaiters.splice(0)) waiter(refusal);
    this.#pump();
  }

  // --------------------------------------------------------------------------------------------------------- words of the workers

  /** The one place that keeps lists and counts in step with the workers' states. */
  moved(worker: Worker<Confinement>, from: WorkerState, to: WorkerState): void {
    if (from === "starting") this.#starting -= 1;
    if (from === "dying") this.#dying -= 1;
    if (to === "dying") this.#dying += 1;
    // A worker that is leased was taken out of its list before it runs.
    if (to === "running" || to === "idle") return;
    if (from === "blank") remove(this.#spares, worker);
    if (from === "idle" && worker.flow !== null) remove(this.#flows.get(worker.flow)?.idle ?? [], worker);
  }

  accepted(worker: Worker<Confinement>): void {
    this.#backoff.succeeded();
    this.#spares.push(worker);
    this.#pump();
  }

  refused(worker: Worker<Confinement>, refusal: Refusal): void {
    this.#startFailed(worker.pid, refusal);
  }

  finished(worker: Worker<Confinement>): void {
    if (this.#closed || worker.spent || worker.activations >= this.#options.activationsMax) {
      this.#retire(worker);
      return;
    }
    this.#flowOf(worker).idle.push(worker);
    if (this.#room.size > 0) this.#pump();
  }

  expired(worker: Worker<Confinement>): void {
    this.#retire(worker);
  }

  violated(worker: Worker<Confinement>, verdict: Verdict): void {
    this.#counters.count(`violation:${verdict.reason}`);
    this.#counters.countFlow(worker.flow, "violations");
    if (worker.flow === null) this.#backoff.failed(this.#clock.monotonicMs());
    this.#onEvent({ kind: "violation", pid: worker.pid, flow: worker.flow, verdict });
  }

  failed(worker: Worker<Confinement>, error: unknown): void {
    this.#onEvent({ kind: "bug", pid: worker.pid, error });
  }

  gone(worker: Worker<Confinement>, exit: ProcessExit, killed: boolean): void {
    this.#workers.delete(worker);
    if (worker.flow !== null) {
      const state = this.#flowOf(worker);
      state.workers -= 1;
      if (state.workers === 0) this.#flows.delete(worker.flow);
    }
    const kind = deathKind(exit);
    if (kind === "syscall") this.#counters.countFlow(worker.flow, "sigsysDeaths");
    if (kind === "trap") this.#counters.countFlow(worker.flow, "trapDeaths");
    if (!killed) {
      // A spare that ends by itself is a start that failed late; without a pause it would be replaced for ever.
      if (worker.flow === null && worker.accepted) this.#backoff.failed(this.#clock.monotonicMs());
      this.#counters.count(`death:${exit.signal ?? (exit.code === null ? "unknown" : `exit_${exit.code}`)}`);
      this.#onEvent({ kind: "lost", pid: worker.pid, flow: worker.flow, message: describeExit(exit) });
    }
    if (this.#workers.size === 0) this.#allGone?.();
    this.#pump();
  }

  #flowOf(worker: Worker<Confinement>): FlowState<Confinement> {
    const state = worker.flow === null ? undefined : this.#flows.get(worker.flow);
    if (state === undefined) throw new Error("a flow with a live worker was forgotten: a bug in the pool");
    return state;
  }

  #retire(worker: Worker<Confinement>): void {
    this.#retired += 1;
    worker.kill();
  }

  // -------------------------------------------------------------------------------------------------------------- idle and the end

  #planInspection(): void {
    if (this.#inspection.dueAt !== Number.POSITIVE_INFINITY) return;
    this.#deadlines.set(this.#inspection, this.#clock.monotonicMs() + this.#options.inspectMs);
  }

  #inspect(): void {
    for (const worker of this.#workers) worker.inspect();
    if (this.#workers.size > 0) this.#planInspection();
  }

  #announceReady(): void {
    if (this.#readyWaiters.length === 0 || this.#spares.length < this.#options.spares) return;
    for (const waiter of this.#readyWaiters.splice(0)) waiter(null);
  }

  #killAll(): void {
    for (const worker of this.#workers) worker.kill();
  }

  async #close(): Promise<void> {
    this.#keepAlive.hold();
    for (const waiter of this.#readyWaiters.splice(0)) waiter(null);
    for (const activation of this.#room.all()) this.#room.leave(activation, "closed");
    for (const worker of this.#workers) {
      worker.activation?.condemn({ status: "cancelled", reason: "closing", message: "the pool was closed" });
      worker.kill();
    }
    if (this.#workers.size > 0) {
      await new Promise<void>((resolve) => {
        this.#allGone = resolve;
      });
    }
    this.#deadlines.close();
    livePools.delete(this.#onExit);
    this.#keepAlive.release();
    this.#keepAlive.dispose();
  }
}

/** What the end of the Node process does to each pool that was not closed. One listener, however many pools. */
const livePools = new (class {
  readonly #ends = new Set<() => void>();
  readonly #listener = (): void => {
    for (const end of this.#ends) end();
  };

  add(end: () => void): void {
    if (this.#ends.size === 0) process.on("exit", this.#listener);
    this.#ends.add(end);
  }

  delete(end: () => void): void {
    this.#ends.delete(end);
    if (this.#ends.size === 0) process.off("exit", this.#listener);
  }
})();

/** What is wrong with the request; a field of another type than declared is wrong too. */
function checkedRequest(request: ActivationRequest): Verdict | null {
  try {
    return requestProblem(request);
  } catch (error) {
    return {
      status: "invalid_input",
      reason: "request",
      message: `the request is malformed: ${String(error)}`,
    };
  }
}

function remove<T>(list: T[], item: T): void {
  const at = list.indexOf(item);
  if (at !== -1) list.splice(at, 1);
}

function scriptBytes<C>(state: FlowState<C>, script: string): Buffer {
  if (script.length < scriptKeptChars) return Buffer.from(script, "utf8");
  if (state.script !== script) {
    state.script = script;
    state.scriptBytes = Buffer.from(script, "utf8");
  }
  return state.scriptBytes;
}
