/**
 * A pool whose workers live in the test: a script is a function of the test, run by the rules of a worker. Calls get their
 * positions when they are made; what is delivered is applied one after the other, and everything that can run does before
 * the next; when nothing can run the worker says that it is blocked. Timers are in virtual time, as in a worker.
 */

import { decodeValue, encodeValue, HostError } from "@flowcell/protocol";
import type { CellActivation, CellPool, CellRequest, CellResult } from "../ports.js";

export interface ScriptHost {
  call(name: string, ...args: unknown[]): ScriptCall;
  sleep(ms: number): Promise<void>;
  log(text: string): void;
  now(): number;
}

export interface ScriptCall extends Promise<unknown> {
  cancel(): void;
}

export type Script = (host: ScriptHost, input: unknown) => Promise<unknown>;

type Ending = Pick<CellResult, "status"> & Partial<CellResult>;

interface Timer {
  readonly at: number;
  readonly fire: () => void;
}

export class ScriptedPool implements CellPool {
  readonly #scripts: ReadonlyMap<string, Script>;
  readonly cells: Cell[] = [];
  /** Activations that wait until `release`, as if every worker were taken. */
  readonly #held: (() => void)[] = [];
  holding = false;
  /** What the next activations end with at once, instead of running. */
  readonly refusals: Ending[] = [];
  waiting = 0;

  constructor(scripts: Readonly<Record<string, Script>>) {
    this.#scripts = new Map(Object.entries(scripts));
  }

  get running(): readonly Cell[] {
    return this.cells.filter((cell) => !cell.over);
  }

  health(): { readonly waiting: number } {
    return { waiting: this.waiting };
  }

  release(): void {
    this.holding = false;
    for (const begin of this.#held.splice(0)) begin();
  }

  activate(request: CellRequest): Promise<CellResult> {
    const refusal = this.refusals.shift();
    if (refusal !== undefined) return Promise.resolve(result(refusal, false));
    const script = this.#scripts.get(request.script);
    if (script === undefined) throw new Error(`no script ${request.script}`);
    return new Promise((resolve) => {
      const cell = new Cell(request, resolve);
      this.cells.push(cell);
      const begin = (): void => cell.begin(script);
      if (this.holding) this.#held.push(begin);
      else setImmediate(begin);
    });
  }
}

export class Cell implements CellActivation {
  readonly request: CellRequest;
  readonly #resolve: (result: CellResult) => void;
  readonly #open = new Map<number, { answer: (error: unknown, value: unknown) => void }>();
  readonly #timers: Timer[] = [];
  readonly #deliveries: (() => void)[] = [];
  #clock: number;
  #nextPosition = 0;
  #nextLog = 0;
  #busy = false;
  over = false;
  /** Whether `frontier` was said. */
  atFrontier = false;

  constructor(request: CellRequest, resolve: (result: CellResult) => void) {
    this.request = request;
    this.#resolve = resolve;
    this.#clock = request.clock.epochMs;
    request.signal?.addEventListener("abort", () =>
      this.finish({ status: "cancelled", reason: "caller" }, false),
    );
  }

  begin(script: Script): void {
    if (this.over) return;
    this.request.driver.begun(this);
    const { input } = this.request;
    this.#busy = true;
    script(this.#host(), decodeValue(input)).then(
      (value) => this.finish({ status: "completed", value: encodeValue(value) }),
      (error: unknown) => this.finish(failure(error)),
    );
    this.#run();
  }

  /** As if the process had been killed. */
  lose(): void {
    this.finish({ status: "worker_lost", reason: "signal" });
  }

  finish(ending: Ending, started = true): void {
    if (this.over) return;
    this.over = true;
    // Not at once: a pool answers when the process is gone.
    setImmediate(() => this.#resolve(result(ending, started)));
  }

  // CellActivation, for the engine

  deliver(position: number, outcome: Parameters<CellActivation["deliver"]>[1], guestClockMs: number): void {
    if (this.over) return;
    const call = this.#open.get(position);
    if (call === undefined) throw new Error(`call ${position} is not open`);
    this.#open.delete(position);
    this.#deliver(() => {
      this.#setClock(guestClockMs);
      if (outcome.ok) call.answer(undefined, decodeValue(outcome.value));
      else call.answer(new HostError(outcome.error.code, outcome.error.message), undefined);
    });
  }

  fireTimer(guestClockMs: number): void {
    if (this.over) return;
    this.#deliver(() => {
      this.#setClock(guestClockMs);
      const first = this.#timers[0];
      if (first === undefined || first.at > this.#clock) return;
      this.#timers.shift();
      first.fire();
    });
  }

  frontier(): void {
    this.atFrontier = true;
  }

  end(verdict: Parameters<CellActivation["end"]>[0]): void {
    const { status, reason, message } = verdict;
    this.finish({ status, reason, error: { code: reason, message } });
  }

  // the worker

  #host(): ScriptHost {
    return {
      call: (name, ...args) => this.#call(name, args),
      sleep: (ms) =>
        new Promise((resolve) => {
          this.#timers.push({ at: this.#clock + ms, fire: () => resolve(undefined) });
          this.#timers.sort((one, other) => one.at - other.at);
        }),
      log: (text) => {
        if (this.over) return;
        this.request.onConsole({ seq: this.#nextLog++, level: "info", timeMs: this.#clock, text });
      },
      now: () => this.#clock,
    };
  }

  #call(name: string, args: readonly unknown[]): ScriptCall {
    const position = this.#nextPosition++;
    const promise = new Promise<unknown>((resolve, reject) => {
      this.#open.set(position, {
        answer: (error, value) => (error === undefined ? resolve(value) : reject(error)),
      });
    });
    // As in a worker, an error that nobody looks at is no crash.
    promise.catch(() => undefined);
    if (!this.over) this.request.driver.called({ position, name, args: encodeValue(args) });
    return Object.assign(promise, {
      cancel: () => {
        if (!this.over && this.#open.has(position)) this.request.driver.callCancelled(position);
      },
    });
  }

  #setClock(guestClockMs: number): void {
    if (guestClockMs < this.#clock) throw new Error("the guest's clock went back");
    this.#clock = guestClockMs;
  }

  #deliver(apply: () => void): void {
    this.#deliveries.push(apply);
    if (this.#busy) return;
    this.#busy = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    if (this.over) return;
    const apply = this.#deliveries.shift();
    if (apply === undefined) {
      this.#busy = false;
      const nextTimerAt = this.#timers[0]?.at ?? null;
      this.request.driver.blocked({ nextTimerAt, openCalls: this.#open.size });
      return;
    }
    apply();
    this.#run();
  }

  /** Whatever can run has run when the event loop comes round. */
  #run(): void {
    setImmediate(() => this.#next());
  }
}

function failure(error: unknown): Ending {
  if (!(error instanceof Error)) throw error;
  const code = error instanceof HostError ? error.code : "uncaught";
  const status = code === "denied" ? "denied" : "script_error";
  return { status, reason: code, error: { code, message: error.message, name: error.name } };
}

function result(ending: Ending, started: boolean): CellResult {
  const { status, reason } = ending;
  return {
    logsTruncated: false,
    warnings: [],
    usage: { cpuMs: 2, wallMs: 3, heapPeakBytes: 1000 },
    replayCpuMs: 0,
    started,
    confinement: { tier: "test" },
    ...(status === "completed" || reason === undefined ? {} : { error: { code: reason, message: status } }),
    ...ending,
  };
}
