/**
 * One timer for all deadlines of a pool.
 *
 * A warm activation takes about a tenth of a millisecond; arming and cancelling a Node timer for each of its
 * limits would cost more than some of them. So every worker and every waiter owns one Deadline object whose
 * due time is a plain number, and one shared timer runs at the earliest of them. Moving a deadline later, or
 * clearing it, costs a store: the timer then fires once too early, looks, and is armed again.
 *
 * Kept true: a deadline never fires before its time; it fires once per `set`; after `close` nothing fires and
 * no timer is left; the callbacks of one pass run in no promised order and may set or drop any deadline.
 * The pass is linear in the number of deadlines, which the pool bounds (workers plus waiters).
 */
import type { Clock, Timer } from "./clock.js";

/** A timer that is later than this was held up, not imprecise. */
const heldUpMs = 10;

export class Deadline {
  /** Monotonic milliseconds; Infinity while nothing is due. Written by Deadlines only. */
  dueAt = Number.POSITIVE_INFINITY;
  readonly fire: (nowMs: number) => void;

  constructor(fire: (nowMs: number) => void) {
    this.fire = fire;
  }
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #entries = new Set<Deadline>();
  #timer: Timer | null = null;
  #armedAt = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Makes `entry` due at `dueAt` (monotonic milliseconds), in place of what it was. */
  set(entry: Deadline, dueAt: number): void {
    if (this.#closed) return;
    if (dueAt === Number.POSITIVE_INFINITY) {
      entry.dueAt = dueAt;
      return;
    }
    if (entry.dueAt === Number.POSITIVE_INFINITY) this.#entries.add(entry);
    entry.dueAt = dueAt;
    if (dueAt < this.#armedAt) this.#arm(dueAt);
  }

  /** Forgets `entry`; it will not fire. */
  drop(entry: Deadline): void {
    entry.dueAt = Number.POSITIVE_INFINITY;
    this.#entries.delete(entry);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = null;
    this.#armedAt = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries) entry.dueAt = Number.POSITIVE_INFINITY;
    this.#entries.clear();
  }

  #arm(dueAt: number): void {
    this.#timer?.cancel();
    this.#armedAt = dueAt;
    this.#timer = this.#clock.after(dueAt - this.#clock.monotonicMs(), () => this.#ring());
  }

  /**
   * When the event loop was held up, answers that came in time may still lie unread in their pipes, and timers run before
   * reads: then everything is read first.
   */
  #ring(): void {
    if (this.#clock.monotonicMs() - this.#armedAt > heldUpMs) this.#clock.soon(() => this.#pass());
    else this.#pass();
  }

  #pass(): void {
    if (this.#closed) return;
    this.#timer = null;
    this.#armedAt = Number.POSITIVE_INFINITY;
    const now = this.#clock.monotonicMs();
    const due: Deadline[] = [];
    for (const entry of this.#entries) {
      if (entry.dueAt <= now) due.push(entry);
      else if (entry.dueAt === Number.POSITIVE_INFINITY) this.#entries.delete(entry);
    }
    for (const entry of due) {
      // An earlier callback of this pass may have moved or cleared it.
      if (entry.dueAt > now) continue;
      entry.dueAt = Number.POSITIVE_INFINITY;
      this.#entries.delete(entry);
      entry.fire(now);
    }
    if (this.#closed) return;
    let next = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries) if (entry.dueAt < next) next = entry.dueAt;
    if (next < this.#armedAt) this.#arm(next);
  }
}
