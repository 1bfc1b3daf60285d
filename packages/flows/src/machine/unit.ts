/**
 * One unit on its way to the store: operations of one run that happen together. Built by the machine (run.ts) out of steps;
 * numbers deliveries and moves the guest's clock as they are put in, so that both are right in the order of the units.
 */

import type { Delivery, NewCall, OperationResult, RunOperation, RunPatch } from "@flowcell/journal";
import type { CallOutcome, LocalOperation } from "@flowcell/protocol";

/**
 * One change that the machine wants. It is built when its turn comes, and may then find that it is not wanted any more: it
 * puts nothing in, and `done` is never called.
 */
export interface Step {
  build(unit: UnitBuilder): void;
  /** After the commit, with the results of its own operations. */
  done(results: readonly OperationResult[]): void;
}

/** The delivery of an operation whose outcome the store finds. */
export type DeliveryOf = (outcome: CallOutcome) => Delivery;

/** Where the numbering stands; kept by the run, moved by its units. */
export interface Counters {
  nextOrder: number;
  guestClockMs: number;
}

export class UnitBuilder {
  readonly operations: RunOperation[] = [];
  readonly now: number;
  readonly #counters: Counters;
  /** Deliveries happen by this time; in virtual time the clock moves by timers and waits alone. */
  readonly #clockNow: number;
  /** Makes the run pending if it is suspended: there is something to give to the script. */
  resumes = false;
  /** Nothing may follow in this unit: whether the last operation takes a delivery's number is for the store to say. */
  closed = false;

  constructor(counters: Counters, now: number, virtualTime: boolean) {
    this.#counters = counters;
    this.now = now;
    this.#clockNow = virtualTime ? 0 : now;
  }

  get nextOrder(): number {
    return this.#counters.nextOrder;
  }

  call(call: NewCall, attempts: number): void {
    this.operations.push({ kind: "call", call, attempts });
  }

  attempt(position: number): void {
    this.operations.push({ kind: "attempt", position });
  }

  cancelCall(position: number): void {
    this.operations.push({ kind: "cancelCall", position });
  }

  unknown(position: number, reason: string | null): void {
    this.operations.push({ kind: "unknown", position, reason });
  }

  run(patch: RunPatch): void {
    this.operations.push({ kind: "run", patch });
  }

  deliver(position: number, outcome: CallOutcome, notBefore = 0): Delivery {
    const place = this.#place(notBefore);
    this.operations.push({ kind: "deliver", ...place, position, outcome });
    return { kind: "call", ...place, position, outcome };
  }

  timer(dueAt: number): Delivery {
    const place = this.#place(dueAt);
    this.operations.push({ kind: "timer", ...place });
    return { kind: "timer", ...place };
  }

  /** The delivery, once the outcome is known. */
  local(position: number, operation: LocalOperation, bytesMax: number): DeliveryOf {
    const place = this.#place(0);
    this.operations.push({ kind: "local", ...place, position, operation, bytesMax });
    return (outcome) => ({ kind: "call", ...place, position, outcome });
  }

  /** The delivery, if there was a signal. */
  takeSignal(position: number, name: string): DeliveryOf {
    const order = this.#counters.nextOrder;
    const guestClockMs = Math.max(this.#counters.guestClockMs, this.#clockNow);
    const at = this.now;
    this.operations.push({ kind: "takeSignal", order, guestClockMs, position, name, at });
    this.closed = true;
    this.resumes = true;
    return (outcome) => {
      this.#counters.nextOrder = order + 1;
      this.#counters.guestClockMs = guestClockMs;
      return { kind: "call", order, guestClockMs, position, outcome, at };
    };
  }

  #place(notBefore: number): { order: number; guestClockMs: number; at: number } {
    this.resumes = true;
    const counters = this.#counters;
    counters.guestClockMs = Math.max(counters.guestClockMs, this.#clockNow, notBefore);
    return { order: counters.nextOrder++, guestClockMs: counters.guestClockMs, at: this.now };
  }
}
