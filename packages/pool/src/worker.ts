/**
 * One worker process as the pool sees it: its state, its pipe, its deadlines, its death.
 *
 *   starting ──Welcome accepted──▶ blank ──▶ running ⇄ idle        any state ──kill, or its end──▶ dying ──collected──▶ dead
 *
 * Made by the pool. A worker that was ever bound to a flow belongs to it until it is dead; `bind` refuses another.
 *
 * TRUST: all bytes come from the worker. While it starts, one Welcome and not a byte more; while it is blank or idle, not
 * a byte; while it runs, what the decoder and the activation admit. Anything else kills it. Whatever a frame leads to
 * happens after every frame of the same chunk was judged, so bytes behind a Finished never reach the next activation.
 *
 * Kept true: `owner` hears `accepted` or `refused` once, `gone` once and last, when the process has been collected and its
 * descriptors are closed; a process is collected only after its output ended, so nothing it said is lost.
 */
import { type Frame, FrameDecoder, type Limits, ProtocolError } from "@flowcell/protocol";
import { explainStart } from "@flowcell/sandbox";
import type { Activation, ActivationPort } from "./activation.js";
import type { Judgement, PipeHandlers, ProcessExit, StartedWorker, WorkerBackend } from "./backend.js";
import type { Clock } from "./clock.js";
import { Deadline, type Deadlines } from "./deadlines.js";
import { deathVerdict, describeExit } from "./death.js";
import type { Verdict } from "./types.js";
import { Violation } from "./violation.js";

export type WorkerState = "starting" | "blank" | "running" | "idle" | "dying" | "dead";

/** Why a worker that was started cannot be used: reasons of `sandbox_unavailable`. */
export interface Refusal {
  readonly reason:
    | "spawn_failed"
    | "start_failed"
    | "welcome_late"
    | "welcome_refused"
    | "observation_failed";
  readonly fact: string;
  readonly message: string;
}

/** What a blank or idle worker did that no correct one does. */
export interface Misconduct {
  readonly reason: "protocol" | "unexpected_message" | "idle_cpu";
  readonly message: string;
}

export interface WorkerOwner<Confinement> {
  /** Every change of state, before anything else is said about it. */
  moved(worker: Worker<Confinement>, from: WorkerState, to: WorkerState): void;
  accepted(worker: Worker<Confinement>): void;
  refused(worker: Worker<Confinement>, refusal: Refusal): void;
  /** The activation ended and the worker can serve again. */
  finished(worker: Worker<Confinement>): void;
  /** It has been idle for as long as it may. */
  expired(worker: Worker<Confinement>): void;
  /** It was killed for what it did; while it ran, the activation has the verdict. */
  violated(worker: Worker<Confinement>, verdict: Verdict): void;
  /** An exception that nobody expects: a bug of ours or of a host function's console callback. */
  failed(worker: Worker<Confinement>, error: unknown): void;
  /** `killed`: the pool killed it, so that its end says nothing. */
  gone(worker: Worker<Confinement>, exit: ProcessExit, killed: boolean): void;
}

export interface WorkerOptions {
  readonly startDeadlineMs: number;
  readonly idleMs: number;
}

/** How long after SIGKILL the caller waits for the process to be gone before it gets its answer. */
const deathPatienceMs = 1000;
/**
 * A process closes its pipe before it can be collected: a moment, or as long as a busy machine keeps it from its end. One
 * that lives on has closed it on purpose; it gains this delay and nothing else, for it is given to nobody any more.
 */
const closedPatienceMs = 1000;
/** CPU time that an idle worker may use after the first look at it; resetting a large heap comes before that. */
const idleCpuUsMax = 20_000;
/** What a correct worker can occupy beside its engine's memory: the engine's 64 MiB stack, buffers, its own data. */
const besideHeapBytesMax = 96 * 1024 * 1024;
/** Looks without a pause before the first pause: a process that ends is collectable within microseconds. */
const eagerLooks = 3;

export class Worker<Confinement> implements ActivationPort<Confinement> {
  /** Whose it is, for life; null while it is blank. */
  flow: string | null = null;
  activations = 0;
  activation: Activation<Confinement> | null = null;
  /** When it became idle or blank. */
  idleSince = 0;
  /** It ran out of a limit, or was single use: it must not serve again. */
  spent = false;

  readonly #backend: WorkerBackend<Confinement>;
  readonly #owner: WorkerOwner<Confinement>;
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #options: WorkerOptions;
  readonly #deadline: Deadline;
  readonly #decoder = new FrameDecoder({ sender: "worker", phase: "starting" });
  readonly #started: StartedWorker;
  #state: WorkerState = "starting";
  /** The state in which its output ended. */
  #endedAs: WorkerState = "starting";
  /** CPU clock at the first look since it became idle; null before it. */
  #idleCpuUs: number | null = null;
  readonly #flush = (): void => this.#flushNow();
  #decoderLimits: Limits | null = null;
  #confinement: Confinement | null = null;
  #outbox: Buffer[] = [];
  #reading = false;
  #flushQueued = false;
  #looks = 0;
  #endedAt = 0;
  #killed = false;
  #lateBytes = 0;

  constructor(
    backend: WorkerBackend<Confinement>,
    owner: WorkerOwner<Confinement>,
    clock: Clock,
    deadlines: Deadlines,
    options: WorkerOptions,
  ) {
    this.#backend = backend;
    this.#owner = owner;
    this.#clock = clock;
    this.#deadlines = deadlines;
    this.#options = options;
    this.#deadline = new Deadline((now) => this.#due(now));
    const handlers: PipeHandlers = {
      bytes: (chunk) => this.#bytes(chunk),
      ended: () => this.#ended(),
    };
    this.#started = backend.start(handlers);
    this.wakeAt(clock.monotonicMs() + options.startDeadlineMs);
  }

  get state(): WorkerState {
    return this.#state;
  }

  get pid(): number {
    return this.#started.process.pid;
  }

  /** Whether its Welcome was ever accepted. */
  get accepted(): boolean {
    return this.#confinement !== null;
  }

  get confinement(): Confinement {
    if (this.#confinement === null)
      throw new Error("a worker was used before it was accepted: a bug in the pool");
    return this.#confinement;
  }

  get unsentBytes(): number {
    return this.#started.pipes.unsentBytes;
  }

  cpuUs(): number | null {
    return this.#started.process.cpuUs();
  }

  /** Makes it the flow's, for ever. */
  bind(flow: string): void {
    if (this.flow !== null && this.flow !== flow) {
      throw new Error("a worker of one flow was leased to another: a bug in the pool");
    }
    this.flow = flow;
  }

  /** Runs the activation. The worker is blank or idle and bound to its flow. */
  run(activation: Activation<Confinement>, script: Buffer): void {
    if ((this.#state !== "blank" && this.#state !== "idle") || this.flow !== activation.flow) {
      throw new Error(`an activation was given to a worker that is ${this.#state}: a bug in the pool`);
    }
    this.#move("running");
    this.activation = activation;
    this.activations += 1;
    const { limits } = activation.request;
    if (this.#decoderLimits === limits) {
      this.#decoder.enter("running");
    } else {
      this.#decoder.enter("running", limits);
      this.#decoderLimits = limits;
    }
    try {
      activation.begin(this, script);
    } catch (error) {
      this.#condemn(activation, error);
      return;
    }
    this.#flushNow();
  }

  post(frame: Buffer): void {
    this.#outbox.push(frame);
    // While a chunk is read, its end flushes; otherwise everything that is settled in this turn goes together.
    if (this.#reading || this.#flushQueued) return;
    this.#flushQueued = true;
    process.nextTick(this.#flush);
  }

  wakeAt(dueAt: number): void {
    this.#deadlines.set(this.#deadline, dueAt);
  }

  kill(): void {
    if (this.#state === "dead") return;
    this.#move("dying");
    this.#outbox = [];
    if (this.#killed) return;
    this.#killed = true;
    this.#started.process.kill();
    this.wakeAt(this.#clock.monotonicMs() + deathPatienceMs);
  }

  /** Looks at what the process uses: CPU time while it has nothing to do, memory while it runs. Called now and then. */
  inspect(): void {
    if (this.#state === "idle" || this.#state === "blank") this.#inspectIdle();
    else if (this.#state === "running") this.#inspectMemory();
  }

  #inspectIdle(): void {
    const used = this.cpuUs();
    if (used === null) return;
    this.#idleCpuUs ??= used;
    const burnt = used - this.#idleCpuUs;
    if (burnt <= idleCpuUsMax) return;
    const message = `an idle worker used ${Math.round(burnt / 1000)} ms of CPU time`;
    this.#punish({ reason: "idle_cpu", message });
  }

  #inspectMemory(): void {
    const activation = this.activation;
    const bytes = this.#started.process.privateBytes();
    if (activation === null || bytes === null) return;
    const { heapBytes } = activation.request.limits;
    if (bytes <= heapBytes + besideHeapBytesMax) return;
    const message = `the process occupies ${bytes} bytes; heapBytes is ${heapBytes}`;
    const verdict: Verdict = { status: "violation", reason: "memory", message };
    activation.condemn(verdict);
    this.#owner.violated(this, verdict);
  }

  /** Kills a blank or idle worker for what it did. */
  #punish(misconduct: Misconduct): void {
    this.kill();
    this.#owner.violated(this, { status: "violation", ...misconduct });
  }

  #move(to: WorkerState): void {
    const from = this.#state;
    if (from === to) return;
    this.#state = to;
    this.#owner.moved(this, from, to);
  }

  // ----------------------------------------------------------------------------------------------------------------- reading

  #bytes(chunk: Buffer): void {
    switch (this.#state) {
      case "starting":
        this.#readWelcome(chunk);
        return;
      case "running":
        this.#readRunning(chunk);
        return;
      case "blank":
      case "idle":
        this.#punish({
          reason: "unexpected_message",
          message: `${chunk.byteLength} bytes of a worker that was not asked anything`,
        });
        return;
      case "dying":
        this.#lateBytes += chunk.byteLength;
        return;
      case "dead":
        return;
    }
  }

  #readWelcome(chunk: Buffer): void {
    let welcome: Frame | undefined;
    try {
      this.#decoder.push(chunk);
      welcome = this.#decoder.next();
      if (welcome === undefined) return;
      this.#decoder.enter("idle");
      if (this.#decoder.pending > 0) {
        this.#refuse({
          reason: "welcome_refused",
          fact: "early_bytes",
          message: `the worker sent ${this.#decoder.pending} bytes after its Welcome, before it was asked anything`,
        });
        return;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#refuse({
        reason: "welcome_refused",
        fact: error.name,
        message: `the worker's first bytes are no Welcome: ${error.message}`,
      });
      return;
    }
    let judgement: Judgement<Confinement>;
    try {
      judgement = this.#backend.judge(welcome.text, this.#started.process);
    } catch (error) {
      this.#owner.failed(this, error);
      const message = `the worker could not be judged: ${String(error)}`;
      this.#refuse({ reason: "observation_failed", fact: "exception", message });
      return;
    }
    if (!judgement.ok) {
      const { reason, fact, message } = judgement;
      this.#refuse({ reason, fact, message });
      return;
    }
    this.#confinement = judgement.confinement;
    this.#move("blank");
    this.#becomeIdle();
    this.#owner.accepted(this);
  }

  #refuse(refusal: Refusal): void {
    this.kill();
    this.#owner.refused(this, refusal);
  }

  #readRunning(chunk: Buffer): void {
    const activation = this.activation;
    if (activation === null) return;
    activation.received(chunk.byteLength);
    this.#reading = true;
    let finished = false;
    let evidence: string | null = null;
    try {
      this.#decoder.push(chunk);
      for (;;) {
        const frame = this.#decoder.next();
        if (frame === undefined) break;
        finished = activation.frame(frame);
        if (this.#state !== "running") break; // an answer of the host killed it
        if (finished) {
          this.#decoder.enter("idle");
          if (this.#decoder.pending > 0)
            evidence = `${this.#decoder.pending} bytes after the end of the activation`;
          break;
        }
      }
    } catch (error) {
      this.#condemn(activation, error);
    }
    this.#reading = false;
    if (!finished || this.#state !== "running") {
      if (this.#outbox.length > 0) this.#flushNow();
      return;
    }
    this.activation = null;
    if (evidence !== null) {
      activation.settle(`violation/unexpected_message: ${evidence}`);
      this.#punish({ reason: "unexpected_message", message: evidence });
      return;
    }
    this.spent ||= activation.endsWorker;
    this.#move("idle");
    this.#becomeIdle();
    // The owner first: whoever the answer wakes finds the worker idle again, or its successor on the way.
    this.#owner.finished(this);
    activation.settle(null);
  }

  /** A frame that could not be taken: the worker's fault, or ours. */
  #condemn(activation: Activation<Confinement>, error: unknown): void {
    let verdict: Verdict;
    if (error instanceof ProtocolError) {
      const phase = error.name === "unexpected_message" || error.name === "repeated_message";
      const reason = phase ? "unexpected_message" : "protocol";
      verdict = { status: "violation", reason, message: `${error.name}: ${error.message}` };
    } else if (error instanceof Violation) {
      verdict = { status: "violation", reason: error.reason, message: error.message };
    } else {
      this.#owner.failed(this, error);
      activation.condemn({
        status: "internal",
        reason: "bug",
        message: "an unexpected exception ended the activation",
      });
      this.kill();
      return;
    }
    activation.condemn(verdict);
    this.kill();
    this.#owner.violated(this, verdict);
  }

  // ----------------------------------------------------------------------------------------------------------------- writing

  #flushNow(): void {
    this.#flushQueued = false;
    const frames = this.#outbox;
    const [first] = frames;
    if (first === undefined) return;
    this.#outbox = [];
    this.#started.pipes.write(frames.length === 1 ? first : Buffer.concat(frames));
  }

  // ------------------------------------------------------------------------------------------------------------ time and the end

  #becomeIdle(): void {
    this.idleSince = this.#clock.monotonicMs();
    this.#idleCpuUs = null;
    // A spare waits for as long as it takes.
    this.wakeAt(this.flow === null ? Number.POSITIVE_INFINITY : this.idleSince + this.#options.idleMs);
  }

  #due(now: number): void {
    switch (this.#state) {
      case "starting":
        this.#refuse({
          reason: "welcome_late",
          fact: "startDeadlineMs",
          message: `the worker did not say Welcome within ${this.#options.startDeadlineMs} ms`,
        });
        return;
      case "running":
        this.activation?.wake(now);
        return;
      case "blank":
      case "idle":
        this.#owner.expired(this);
        return;
      case "dying":
        // Killed and not gone: the caller gets its answer, the place stays taken until the kernel lets go.
        this.#answer(null);
        return;
      case "dead":
        return;
    }
  }

  #ended(): void {
    this.#endedAt = this.#clock.monotonicMs();
    if (this.#state !== "dying") {
      this.#endedAs = this.#state;
      this.#deadlines.drop(this.#deadline);
      // Whatever it is doing, nobody can be given to it any more.
      this.#move("dying");
    }
    this.#collect();
  }

  /** Its output has ended: looks until the process can be collected. */
  #collect(): void {
    if (this.#state === "dead") return;
    const exit = this.#started.process.reap();
    if (exit !== null) {
      this.#die(exit);
      return;
    }
    this.#looks += 1;
    const waited = this.#clock.monotonicMs() - this.#endedAt;
    if (!this.#killed && waited > closedPatienceMs) this.#closedOutput();
    if (this.#looks <= eagerLooks) {
      this.#clock.soon(() => this.#collect());
      return;
    }
    this.#clock.after(Math.min(50, this.#looks - eagerLooks), () => this.#collect());
  }

  #closedOutput(): void {
    const message = "the worker closed its output and went on running";
    this.activation?.condemn({ status: "worker_lost", reason: "closed", message });
    this.kill();
    if (this.#endedAs === "starting") this.#refuse({ reason: "start_failed", fact: "closed", message });
  }

  #die(exit: ProcessExit): void {
    const killed = this.#killed;
    this.#move("dead");
    this.#deadlines.drop(this.#deadline);
    const diagnostics = this.#started.pipes.close();
    if (this.#endedAs === "starting" && !killed) {
      const { reason, step, message } = explainStart(exit);
      const cut = this.#decoder.pending > 0 ? `, after ${this.#decoder.pending} bytes of a message` : "";
      const said = diagnostics === "" ? "" : ` (it wrote: ${diagnostics})`;
      this.#owner.refused(this, { reason, fact: step, message: `${message}${cut}${said}` });
    }
    this.#answer(exit);
    this.#owner.gone(this, exit, killed);
  }

  /** Ends the activation of a worker that is gone, or as good as gone. */
  #answer(exit: ProcessExit | null): void {
    const activation = this.activation;
    if (activation === null) return;
    this.activation = null;
    const { cpuMs, stackBytes, heapBytes } = activation.request.limits;
    const own = activation.running
      ? deathVerdict(exit, {
          cutBytes: this.#decoder.pending,
          cpuLimitSeconds: this.#backend.cpuLimitSeconds,
          cpuMs,
          stackBytes,
          heapBytes,
        })
      : null;
    if (own?.status === "violation") this.#owner.violated(this, own);
    const cpuUs = exit === null ? this.cpuUs() : exit.cpuUs;
    activation.died(own, cpuUs, this.#afterVerdict(exit));
  }

  /** What is known beside the verdict when somebody else's word came first. */
  #afterVerdict(exit: ProcessExit | null): string[] {
    const evidence: string[] = [];
    if (this.#lateBytes > 0) evidence.push(`${this.#lateBytes} bytes came after the verdict`);
    if (exit?.signal !== "SIGKILL") evidence.push(describeExit(exit));
    return evidence;
  }
}
