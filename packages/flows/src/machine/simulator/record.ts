/**
 * What the store has of a simulated run, kept beside it unit by unit so that every step can be checked at once, and the rules
 * that hold for it. A broken rule is thrown as `Broken`.
 */

import type { OperationResult, RunOperation, RunState } from "@flowcell/journal";
import type { CallOutcome, WaitCondition } from "@flowcell/protocol";
import { sameOutcome } from "../outcomes.js";

/** An invariant of the simulation does not hold. */
export class Broken extends Error {
  override readonly name = "Broken";
}

export type Given =
  | {
      readonly kind: "call";
      readonly position: number;
      readonly outcome: CallOutcome;
      readonly guestClockMs: number;
    }
  | { readonly kind: "timer"; readonly guestClockMs: number };

export interface RecordedCall {
  readonly name: string;
  readonly effect: string;
  readonly wait: WaitCondition | null;
  attempts: number;
  open: boolean;
  unknown: boolean;
}

export class Record {
  state: RunState = "pending";
  status: string | null = null;
  dueAt: number | null = null;
  readonly given: Given[] = [];
  readonly calls = new Map<number, RecordedCall>();
  /** Signals that were taken: their values are all different. */
  readonly signals = new Set<string>();

  apply(operations: readonly RunOperation[], results: readonly OperationResult[]): void {
    if (this.state === "finished") throw new Broken("a finished run was changed");
    for (const [at, operation] of operations.entries()) this.#apply(operation, results[at]);
  }

  #apply(operation: RunOperation, result: OperationResult | undefined): void {
    switch (operation.kind) {
      case "call": {
        const { position, name, effect, wait } = operation.call;
        const { attempts } = operation;
        this.calls.set(position, { name, effect, wait, attempts, open: true, unknown: false });
        return;
      }
      case "attempt":
        this.#call(operation.position).attempts += 1;
        return;
      case "unknown":
        this.#call(operation.position).unknown = operation.reason !== null;
        return;
      case "deliver":
        this.#deliver(operation.position, operation.outcome, operation.guestClockMs);
        return;
      case "local":
        if (result?.kind !== "outcome") throw new Broken("a local operation without an outcome");
        this.#deliver(operation.position, result.outcome, operation.guestClockMs);
        return;
      case "takeSignal":
        if (result?.kind === "signal" && result.value !== null)
          this.#deliver(operation.position, { ok: true, value: result.value }, operation.guestClockMs);
        return;
      case "timer":
        this.given.push({ kind: "timer", guestClockMs: operation.guestClockMs });
        return;
      case "run": {
        const { state, status, dueAt } = operation.patch;
        this.state = state ?? this.state;
        if (status !== undefined) this.status = status;
        if (dueAt !== undefined) this.dueAt = dueAt;
        return;
      }
      case "logs":
      case "cancelCall":
        return;
    }
  }

  #call(position: number): RecordedCall {
    const call = this.calls.get(position);
    if (call === undefined) throw new Broken(`call ${position} has no record`);
    return call;
  }

  #deliver(position: number, outcome: CallOutcome, guestClockMs: number): void {
    const call = this.#call(position);
    call.open = false;
    if (call.wait?.kind === "signal" && outcome.ok) {
      if (this.signals.has(outcome.value.text))
        throw new Broken(`a signal was taken twice, by call ${position}`);
      this.signals.add(outcome.value.text);
    }
    this.given.push({ kind: "call", position, outcome, guestClockMs });
  }

  /** What was just sent to a worker, as the so manieth thing, must be on record as just that. */
  checkSent(sent: Given, at: number): void {
    const recorded = this.given[at];
    if (recorded === undefined) throw new Broken(`delivery ${at} was sent before it was committed`);
    if (recorded.kind !== sent.kind || recorded.guestClockMs !== sent.guestClockMs)
      throw new Broken(`delivery ${at} was sent as another one`);
    if (recorded.kind !== "call" || sent.kind !== "call") return;
    if (recorded.position !== sent.position || !sameOutcome(recorded.outcome, sent.outcome))
      throw new Broken(`delivery ${at} was sent out of order or with another outcome`);
  }

  /** Calls that wait for a signal. */
  get waitingForSignals(): number {
    let count = 0;
    for (const { open, wait } of this.calls.values()) if (open && wait?.kind === "signal") count += 1;
    return count;
  }
}

/** How many things a unit delivered. */
export function deliveriesIn(
  operations: readonly RunOperation[],
  results: readonly OperationResult[],
): number {
  let count = 0;
  for (const [at, { kind }] of operations.entries()) {
    const result = results[at];
    if (kind === "deliver" || kind === "timer" || kind === "local") count += 1;
    else if (kind === "takeSignal" && result?.kind === "signal" && result.value !== null) count += 1;
  }
  return count;
}
