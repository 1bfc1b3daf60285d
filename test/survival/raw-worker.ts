// One real worker without a pool: for what a pool never does, such as to go on with a worker whose activation ran out of
// memory, and for a look at its memory between two activations. The activations themselves are the pool's own.
//
// Used by survival.test.ts. Host calls are answered with their own arguments; time is virtual.
import { setTimeout as delay } from "node:timers/promises";
import { bundleSource } from "@flowcell/bundle";
import type { LaunchedWorker, WorkerExit } from "@flowcell/native";
import {
  decodeValue,
  type EncodedValue,
  encodeValue,
  FrameDecoder,
  type Limits,
  profileLimits,
} from "@flowcell/protocol";
import {
  acceptWorker,
  defaultPolicy,
  formatFailure,
  launchPlanned,
  preparePlan,
  type SandboxPlan,
  type WorkerConfinement,
} from "@flowcell/sandbox";
import { Activation, type ActivationPort } from "../../packages/pool/src/activation.js";
import type { WorkerPipes } from "../../packages/pool/src/backend.js";
import { systemClock } from "../../packages/pool/src/clock.js";
import { openPipes } from "../../packages/pool/src/pipes.js";
import type { ActivationResult } from "../../packages/pool/src/types.js";
import { type GuestCase, labelOf, sourceOf } from "../guests/case.js";
import { look } from "../parent/processes.js";

export interface RawGuest extends Omit<GuestCase, "name" | "expect"> {
  readonly onHostCall?: () => void;
  readonly isolation?: "process";
}

export type RawResult = ActivationResult<WorkerConfinement>;

export function planForTests(): SandboxPlan {
  const { result } = preparePlan(defaultPolicy("flow"));
  if (!result.ok) throw new Error(formatFailure(result.failure));
  return result.plan;
}

const names = ["t.echo"];
const seed = new Uint8Array(32).fill(7);
const startMs = 1_700_000_000_000;

export class RawWorker implements ActivationPort<WorkerConfinement> {
  readonly unsentBytes = 0;
  activations = 0;
  readonly #plan: SandboxPlan;
  readonly #process: LaunchedWorker;
  readonly #pipes: WorkerPipes;
  readonly #decoder = new FrameDecoder({ sender: "worker", phase: "starting" });
  #confinement: WorkerConfinement | null = null;
  #exit: WorkerExit | null = null;
  #activation: Activation<WorkerConfinement> | null = null;
  #accepted: () => void = () => {};
  #failed: (error: unknown) => void = () => {};

  private constructor(plan: SandboxPlan) {
    this.#plan = plan;
    const worker = launchPlanned(plan);
    this.#process = worker;
    this.#pipes = openPipes(worker, { bytes: (chunk) => this.#bytes(chunk), ended: () => this.#ended() });
  }

  /** A worker whose Welcome was accepted. */
  static start(plan: SandboxPlan): Promise<RawWorker> {
    return new Promise((resolve, reject) => {
      const worker = new RawWorker(plan);
      worker.#accepted = () => resolve(worker);
      worker.#failed = reject;
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get confinement(): WorkerConfinement {
    if (this.#confinement === null) throw new Error("the worker has not been accepted");
    return this.#confinement;
  }

  cpuUs(): number | null {
    return this.#process.cpuUs();
  }

  post(frame: Buffer): void {
    this.#pipes.write(frame);
  }

  /** Time is virtual and the tests' own time limit is the deadline. */
  wakeAt(): void {}

  kill(): void {
    this.#process.kill();
  }

  /** Runs a case, whatever became of the one before. `onHostCall` looks on while the script waits for an answer. */
  async run(guest: RawGuest): Promise<RawResult> {
    const limits: Limits = { ...profileLimits("flow"), cpuMs: 20_000, ...guest.limits };
    const bundled = await bundleSource(sourceOf(guest), {
      label: labelOf(guest),
      sourceBytes: limits.sourceBytes,
    });
    const text = bundled.ok ? bundled.script.text : sourceOf(guest);
    return await new Promise((resolve, reject) => {
      this.#failed = reject;
      this.activations += 1;
      const activation = new Activation<WorkerConfinement>(
        {
          flow: "survival",
          script: text,
          input: encodeValue(guest.input),
          names,
          limits,
          clock: { epochMs: startMs, mode: "virtual" },
          seed,
          ...(guest.isolation === undefined ? {} : { isolation: guest.isolation }),
          onHostCall: ({ args }) => {
            guest.onHostCall?.();
            return { ok: true, value: firstOf(args) };
          },
        },
        systemClock,
        Number.POSITIVE_INFINITY,
        resolve,
        () => {},
      );
      this.#activation = activation;
      this.#decoder.enter("running", limits);
      activation.begin(this, Buffer.from(text));
    });
  }

  /** The result is out before the worker has reset itself: waits until it waits, which it does in its next read. */
  async idle(): Promise<void> {
    for (let calm = 0; calm < 3; await delay(2)) calm = look(this.pid)?.state === "S" ? calm + 1 : 0;
  }

  #bytes(chunk: Buffer): void {
    try {
      this.#activation?.received(chunk.byteLength);
      this.#decoder.push(chunk);
      for (let frame = this.#decoder.next(); frame !== undefined; frame = this.#decoder.next()) {
        const activation = this.#activation;
        if (activation === null) {
          const acceptance = acceptWorker(this.#plan, this.pid, frame.text);
          if (!acceptance.ok) throw new Error(acceptance.refusal.message);
          this.#confinement = acceptance.confinement;
          this.#decoder.enter("idle");
          this.#accepted();
        } else if (activation.frame(frame)) {
          this.#decoder.enter("idle");
          activation.settle(null);
        }
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  /** How the process ended; null while it lives. Nobody here has to have killed it. */
  async exit(): Promise<WorkerExit | null> {
    for (let looks = 0; looks < 2000; looks++) {
      const exit = this.#exit ?? this.#process.reap();
      if (exit !== null) return exit;
      await delay(5);
    }
    return null;
  }

  #ended(): void {
    this.#exit = this.#process.reap();
    this.#failed(new Error(`the worker ended: ${JSON.stringify(this.#exit)}`));
  }

  close(): void {
    this.#failed = () => {};
    this.#process.kill();
    this.#pipes.close();
  }
}

/** TRUST: a test's own script made the arguments. */
function firstOf(args: EncodedValue): EncodedValue {
  const list = decodeValue(args);
  return encodeValue(Array.isArray(list) ? list[0] : undefined);
}
