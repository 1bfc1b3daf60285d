/**
 * Workers that live in the test: a backend whose processes do only what the test says, on the test's clock.
 * It speaks real frames, so that the pool's decoder and phases are the real ones.
 */
import {
  type ActivateHeader,
  type DeliverHeader,
  type EncodedValue,
  encodeFrame,
  encodeUsageReport,
  type FinishedHeader,
  type Frame,
  FrameDecoder,
  type MessageType,
  messageType,
  parseActivate,
  parseDeliver,
  workerHeader,
} from "@flowcell/protocol";
import type {
  Judgement,
  PipeHandlers,
  ProcessExit,
  StartedWorker,
  WorkerBackend,
  WorkerPipes,
  WorkerProcess,
} from "../backend.js";
import { StartError } from "../backend.js";

export interface FakeConfinement {
  readonly pid: number;
}

export type Received =
  | {
      readonly kind: "activate";
      readonly header: ActivateHeader;
      readonly script: string;
      readonly input: EncodedValue;
    }
  | { readonly kind: "deliver"; readonly header: DeliverHeader; readonly value: EncodedValue | undefined };

export class FakeWorker implements WorkerProcess, WorkerPipes {
  readonly pid: number;
  readonly #handlers: PipeHandlers;
  readonly #decoder = new FrameDecoder({ sender: "parent", phase: "idle" });
  readonly received: Received[] = [];
  /** Each write of the parent, as the number of frames in it. */
  readonly writes: number[] = [];
  killed = false;
  closed = false;
  unsentBytes = 0;
  cpu = 0;
  memory = 0;
  /** Whether a kill ends it at once; a test that looks at the time between sets it to false. */
  diesAtOnce = true;
  #exit: ProcessExit | null = null;

  constructor(pid: number, handlers: PipeHandlers) {
    this.pid = pid;
    this.#handlers = handlers;
  }

  // WorkerProcess and WorkerPipes, for the pool

  kill(): boolean {
    this.killed = true;
    if (this.diesAtOnce) queueMicrotask(() => this.die({ code: null, signal: "SIGKILL", cpuUs: this.cpu }));
    return true;
  }

  reap(): ProcessExit | null {
    return this.#exit;
  }

  cpuUs(): number {
    return this.#exit?.cpuUs ?? this.cpu;
  }

  privateBytes(): number {
    return this.memory;
  }

  write(bytes: Buffer): void {
    if (this.killed || this.#exit !== null) return;
    this.#decoder.push(bytes);
    let frames = 0;
    for (let frame = this.#decoder.next(); frame !== undefined; frame = this.#decoder.next()) {
      frames += 1;
      this.#receive(frame);
    }
    this.writes.push(frames);
  }

  close(): string {
    this.closed = true;
    return "";
  }

  #receive(frame: Frame): void {
    if (frame.type === messageType.Activate) {
      this.#decoder.enter("running");
      const script = Buffer.from(frame.attachments[1] ?? []).toString();
      this.received.push({
        kind: "activate",
        header: parseActivate(frame.header),
        script,
        input: frame.value(2),
      });
      return;
    }
    const header = parseDeliver(frame.header);
    this.received.push({ kind: "deliver", header, value: frame.hasValue ? frame.value() : undefined });
  }

  // for the test

  get last(): Received | undefined {
    return this.received.at(-1);
  }

  bytes(bytes: Uint8Array): void {
    this.#handlers.bytes(Buffer.from(bytes));
  }

  /** Several frames in one chunk. */
  send(...frames: Buffer[]): void {
    this.bytes(Buffer.concat(frames));
  }

  welcome(header = "{}"): void {
    this.send(encodeFrame({ type: messageType.Welcome, header }));
  }

  die(exit: Partial<ProcessExit>): void {
    if (this.#exit !== null) return;
    this.#exit = { code: null, signal: null, cpuUs: this.cpu, ...exit };
    this.#handlers.ended();
  }

  /** The output ends while the process lives on. */
  closeOutput(): void {
    this.#handlers.ended();
  }

  finish(value: unknown = null): void {
    this.#decoder.enter("idle");
    this.send(finished({ status: "completed", warnings: [], hostCalls: 0 }, JSON.stringify(value)));
  }

  end(header: FinishedHeader): void {
    this.#decoder.enter("idle");
    this.send(finished(header));
  }
}

const report = encodeUsageReport({
  cpuUs: 1,
  heapPeakBytes: 6_000_000,
  heapNowBytes: 5_000_000,
  gcRuns: 0,
  interrupts: 0,
});

export function finished(header: FinishedHeader, value?: string): Buffer {
  return encodeFrame({
    type: messageType.Finished,
    header: workerHeader(header),
    value: value === undefined ? undefined : { text: value, devalue: false, attachments: [] },
    trailer: report,
  });
}

export function refused(message: string): Buffer {
  const header = workerHeader({ error: { name: "SyntaxError", message, stack: "" } });
  return encodeFrame({ type: messageType.Refused, header, trailer: report });
}

export function hostCall(
  position: number,
  name: string,
  args: unknown[] = [],
  attachments: Uint8Array[] = [],
): Buffer {
  return encodeFrame({
    type: messageType.HostCall,
    header: workerHeader({ position, name }),
    value: { text: JSON.stringify(args), devalue: false, attachments },
  });
}

export function plain(type: MessageType, header: unknown): Buffer {
  return encodeFrame({ type, header: JSON.stringify(header) });
}

export function blocked(nextTimerAt: number | null, openCalls: number, delivered = 0): Buffer {
  return plain(messageType.Blocked, { nextTimerAt, openCalls, delivered });
}

export function consoleLine(seq: number, text: string): Buffer {
  return plain(messageType.Console, { seq, level: "log", timeMs: 0, text });
}

export class FakeBackend implements WorkerBackend<FakeConfinement> {
  readonly cpuLimitSeconds = 3600;
  readonly workers: FakeWorker[] = [];
  /** Says Welcome by itself, in the next microtask. */
  autoWelcome = true;
  /** The next starts fail at this step. */
  failStart: string | null = null;
  refuseFact: string | null = null;

  start(handlers: PipeHandlers): StartedWorker {
    if (this.failStart !== null) throw new StartError(this.failStart, `step ${this.failStart} failed`);
    const worker = new FakeWorker(1000 + this.workers.length, handlers);
    this.workers.push(worker);
    if (this.autoWelcome) queueMicrotask(() => worker.welcome());
    return { process: worker, pipes: worker };
  }

  judge(_welcome: unknown, process: WorkerProcess): Judgement<FakeConfinement> {
    if (this.refuseFact !== null) {
      const message = `${this.refuseFact} is not what the plan demands`;
      return { ok: false, reason: "welcome_refused", fact: this.refuseFact, message };
    }
    return { ok: true, confinement: { pid: process.pid } };
  }

  get live(): FakeWorker[] {
    return this.workers.filter((worker) => !worker.closed);
  }

  /** The workers that run an activation of this script, in the order of their starts. */
  running(script: string): FakeWorker[] {
    return this.live.filter(
      ({ last, killed }) => !killed && last?.kind === "activate" && last.script === script,
    );
  }
}
