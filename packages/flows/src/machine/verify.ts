/**
 * Replays a history without doing anything: no call is begun, nothing is committed. For `flowcell replay RUN` and for kept
 * recordings. The engine gives it the events of an activation that runs the same version; it answers what to deliver, by the
 * very pump of the machine, and finds the first divergence.
 *
 * When all that is recorded was replayed, the verdict depends on how the run ended: a script that had ended by itself must
 * end again, with the same result; for any other run there is no more to compare.
 *
 * TRUST: what the worker says is a script's; see pump.ts.
 */

import type { Delivery, RunHistory } from "@flowcell/journal";
import type { EncodedValue, Status } from "@flowcell/protocol";
import { type Divergence, endOf } from "./divergence.js";
import { sameValue } from "./outcomes.js";
import { Pump } from "./pump.js";
import type { ActivationEnd, RunCommand, RunEvent } from "./types.js";

/** Other events of an activation change nothing here. */
export type VerifyEvent = RunEvent & { readonly kind: "called" | "blocked" | "ended" };
export type VerifyCommand = RunCommand & {
  readonly kind: "frontier" | "deliver" | "fireTimer" | "endWorker";
};

export interface Verification {
  readonly matched: boolean;
  readonly divergence: Divergence | null;
  /** What was compared. */
  readonly deliveries: number;
  readonly calls: number;
}

interface OwnEnd {
  readonly status: Status;
  readonly reason: string | null;
  readonly result: EncodedValue | null;
}

export class HistoryVerifier {
  readonly #pump = new Pump();
  readonly #end: OwnEnd | null;
  readonly #calls: number;
  #finding: Verification | null = null;

  constructor({ run, calls, deliveries }: RunHistory) {
    this.#end = ownEnd(run);
    this.#calls = calls.length;
    for (const { position, name, digest } of calls) this.#pump.know(position, name, digest);
    for (const delivery of deliveries) if (wasGiven(delivery, run.endOrder)) this.#pump.add(delivery);
    this.#pump.begin();
  }

  /**
   * Set once it is known; the activation may end then. Still null after `ended`: the worker was lost or could not be had, which
   * says nothing about the history.
   */
  get finding(): Verification | null {
    return this.#finding;
  }

  /** When the activation has begun; its clock is the run's `guestStartMs`. */
  start(): readonly VerifyCommand[] {
    return this.#proceed();
  }

  handle(event: VerifyEvent): readonly VerifyCommand[] {
    if (this.#finding !== null) return [];
    switch (event.kind) {
      case "called": {
        const found = this.#pump.called(event.position, event.name, event.digest);
        return typeof found === "object" ? this.#found(found) : this.#proceed();
      }
      case "blocked":
        this.#pump.block(event);
        return this.#proceed();
      case "ended":
        if (saysSomething(event.end)) this.#ended(event.end.status, event.end.reason, event.end.value);
        return [];
    }
  }

  #proceed(): readonly VerifyCommand[] {
    const pump = this.#pump;
    const commands: VerifyCommand[] = [];
    for (let delivery = pump.next(); delivery !== null; delivery = pump.next()) {
      const { guestClockMs } = delivery;
      if (delivery.kind === "timer") commands.push({ kind: "fireTimer", guestClockMs });
      else {
        const { position, outcome } = delivery;
        commands.push({ kind: "deliver", position, outcome, guestClockMs });
      }
    }
    if (pump.reachFrontier()) {
      commands.push({ kind: "frontier" });
      if (this.#end === null) return [...commands, ...this.#found(null)];
    }
    return [...commands, ...this.#stuck()];
  }

  /** Nothing can be given to a script that waits: it should have done, or ended, otherwise. */
  #stuck(): readonly VerifyCommand[] {
    const { blocked } = this.#pump;
    const divergence = this.#pump.stuck();
    if (divergence !== null) return this.#found(divergence);
    if (blocked === null || this.#end === null || !this.#pump.atFrontier) return [];
    const { status, reason, result } = this.#end;
    const expected = endOf(status, reason, result);
    return this.#found({ position: null, order: null, expected, actual: { kind: "blocked", ...blocked } });
  }

  #ended(status: Status, reason: string | null, value: EncodedValue | null): void {
    const actual = endOf(status, reason, value);
    const early = this.#pump.ended(actual);
    if (early !== null || this.#end === null) {
      this.#found(early);
      return;
    }
    const { status: expectedStatus, reason: expectedReason, result } = this.#end;
    const same = status === expectedStatus && reason === expectedReason && sameResult(value, result);
    const expected = endOf(expectedStatus, expectedReason, result);
    this.#found(same ? null : { position: null, order: null, expected, actual });
  }

  #found(divergence: Divergence | null): readonly VerifyCommand[] {
    const matched = divergence === null;
    this.#finding = { matched, divergence, deliveries: this.#pump.sent, calls: this.#calls };
    const message = matched ? "the history was replayed" : "the replay differs from the history";
    return [{ kind: "endWorker", status: "cancelled", reason: "closing", message }];
  }
}

/** Whether an activation ended by what its script did, not by what happened to its worker. */
function saysSomething({ status, reason }: ActivationEnd): boolean {
  switch (status) {
    case "completed":
    case "script_error":
    case "denied":
    case "violation":
      return true;
    case "budget_exceeded":
      return isOwnBudget(reason);
    default:
      return false;
  }
}

/** What came after the script's end is on record only. */
function wasGiven({ order }: Delivery, endOrder: number | null): boolean {
  return endOrder === null || order < endOrder;
}

/** How the script ended, if it did so by itself and does not depend on how fast this machine is. */
function ownEnd({ status, endStatus, reason, result }: RunHistory["run"]): OwnEnd | null {
  const own = endStatus ?? status;
  switch (own) {
    case "completed":
    case "script_error":
    case "denied":
      return { status: own, reason, result };
    case "budget_exceeded":
      return isOwnBudget(reason) ? { status: own, reason, result } : null;
    default:
      return null;
  }
}

/** Whether a script comes to this end by itself, and on every machine: time is the machine's, and the journal ends the run. */
function isOwnBudget(reason: string | null): boolean {
  return reason !== "cpu" && reason !== "wall" && reason !== "record_size";
}

function sameResult(one: EncodedValue | null, other: EncodedValue | null): boolean {
  return one === null || other === null ? one === other : sameValue(one, other);
}
