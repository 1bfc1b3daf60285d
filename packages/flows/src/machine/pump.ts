/**
 * The pump: what may be given to the script now. The machine of a run (machine.ts) and the verifier of histories (verify.ts)
 * have one each; replay and live are the same pump, which is why a replay is exact.
 *
 * It holds the committed deliveries in their order, the calls that are known (recorded, or begun by this process), and what
 * the script has done in this activation. A script's state is a function of its input and of the deliveries it has taken,
 * one after the other; so the pump hands them out in order and never ahead of what makes them possible:
 *   - a call's outcome when the script has made that very call in this activation, with the recorded name and digest;
 *   - a timer when the script has taken everything before it, waits, and has a timer that is due by the recorded clock.
 *
 * The frontier is reached when every committed delivery was sent and every known call was made. Until then the script is
 * replaying, and whatever else it does is a divergence.
 *
 * TRUST: names, digests and figures come from a worker that a script may have taken over. The pool has checked that positions
 * ascend and that calls are open; a wrong figure here costs the script its own run.
 */

import type { Delivery } from "@flowcell/journal";
import type { Divergence, Happening } from "./divergence.js";

interface Entry {
  readonly name: string;
  readonly digest: string;
  /** Recorded or begun: the next activation must make it too. */
  known: boolean;
  /** In this activation. */
  made: boolean;
}

export interface Blocked {
  readonly nextTimerAt: number | null;
  readonly openCalls: number;
}

export class Pump {
  readonly #calls = new Map<number, Entry>();
  readonly #deliveries: Delivery[] = [];
  /** Deliveries sent in this activation. */
  #sent = 0;
  /** Calls made in this activation. */
  #made = 0;
  /** Those of them whose outcome was sent. */
  #answered = 0;
  /** Known calls that were not made in this activation. */
  #missing = 0;
  #frontier = false;
  #blocked: Blocked | null = null;

  /** The script begins anew. */
  begin(): void {
    this.#sent = 0;
    this.#made = 0;
    this.#answered = 0;
    this.#missing = 0;
    this.#frontier = false;
    this.#blocked = null;
    for (const [position, entry] of this.#calls) {
      entry.made = false;
      if (entry.known) this.#missing += 1;
      else this.#calls.delete(position);
    }
  }

  /** A call that every later activation must make. */
  know(position: number, name: string, digest: string): void {
    const entry = this.#calls.get(position);
    if (entry === undefined) {
      this.#calls.set(position, { name, digest, known: true, made: false });
      this.#missing += 1;
    } else {
      entry.known = true;
    }
  }

  /** A delivery that is committed: never before. */
  add(delivery: Delivery): void {
    if (delivery.order !== this.#deliveries.length)
      throw new Error(`pump: delivery ${delivery.order} came after ${this.#deliveries.length} others`);
    if (delivery.kind === "call" && this.#calls.get(delivery.position)?.known !== true)
      throw new Error(`pump: a delivery for call ${delivery.position}, which is not known`);
    this.#deliveries.push(delivery);
  }

  /** The script made a call: whether it was known, or how it differs from the one that was. */
  called(position: number, name: string, digest: string): boolean | Divergence {
    this.#blocked = null;
    const entry = this.#calls.get(position);
    if (entry === undefined) {
      this.#calls.set(position, { name, digest, known: false, made: true });
      this.#made += 1;
      return false;
    }
    if (entry.made) throw new Error(`pump: call ${position} came twice in one activation`);
    if (entry.name !== name || entry.digest !== digest) {
      return {
        position,
        order: null,
        expected: callOf(position, entry),
        actual: { kind: "call", position, name, digest },
      };
    }
    entry.made = true;
    this.#made += 1;
    this.#missing -= 1;
    return true;
  }

  /** The script waits. False when it has not taken yet what was sent: it will say so again. */
  block(blocked: Blocked): boolean {
    if (blocked.openCalls !== this.#made - this.#answered) return false;
    this.#blocked = blocked;
    return true;
  }

  /** What may be given to the script now, in order; each once. */
  next(): Delivery | null {
    const delivery = this.#deliveries[this.#sent];
    if (delivery === undefined) return null;
    if (delivery.kind === "call") {
      if (this.#calls.get(delivery.position)?.made !== true) return null;
      this.#answered += 1;
    } else if (!this.#timerDue(delivery.guestClockMs)) {
      return null;
    }
    this.#sent += 1;
    this.#blocked = null;
    return delivery;
  }

  /** True once, when the replay is over. */
  reachFrontier(): boolean {
    if (this.#frontier || this.#sent < this.#deliveries.length || this.#missing > 0) return false;
    this.#frontier = true;
    return true;
  }

  get atFrontier(): boolean {
    return this.#frontier;
  }

  /** Set while the script is known to wait with everything taken that was sent. */
  get blocked(): Blocked | null {
    return this.#blocked;
  }

  get sent(): number {
    return this.#sent;
  }

  /** After `next` gave nothing: what is missing, if the script waits for it in vain. */
  stuck(): Divergence | null {
    if (this.#frontier || this.#blocked === null) return null;
    return this.#missed({ kind: "blocked", ...this.#blocked });
  }

  /** The script ended by itself: what it should have done before. */
  ended(end: Happening): Divergence | null {
    return this.#frontier ? null : this.#missed(end);
  }

  #timerDue(guestClockMs: number): boolean {
    const timer = this.#blocked?.nextTimerAt ?? null;
    return timer !== null && timer <= guestClockMs;
  }

  #missed(actual: Happening): Divergence {
    const delivery = this.#deliveries[this.#sent];
    if (delivery?.kind === "timer") {
      const expected = { kind: "timer", guestClockMs: delivery.guestClockMs } as const;
      return { position: null, order: delivery.order, expected, actual };
    }
    // Positions ascend as calls are made: what the next delivery belongs to may not be the first call that is missing.
    let first = Number.POSITIVE_INFINITY;
    for (const [position, { known, made }] of this.#calls)
      if (known && !made && position < first) first = position;
    const entry = this.#calls.get(first);
    if (entry === undefined) throw new Error("pump: before the frontier, with nothing missing");
    const order = delivery?.position === first ? delivery.order : null;
    return { position: first, order, expected: callOf(first, entry), actual };
  }
}

function callOf(position: number, { name, digest }: Entry): Happening {
  return { kind: "call", position, name, digest };
}
