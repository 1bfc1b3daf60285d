/**
 * A clock for tests: time moves only by `advance`, and timers fire in order inside that call.
 * It is reachable from tests alone; the package's index does not export it.
 */
import type { Clock, Timer } from "../clock.js";

interface FakeTimer {
  readonly at: number;
  readonly fire: () => void;
}

export class FakeClock implements Clock {
  #now = 0;
  readonly #timers = new Set<FakeTimer>();

  /** Timers that wait. */
  get armed(): number {
    return this.#timers.size;
  }

  monotonicMs(): number {
    return this.#now;
  }

  after(ms: number, fire: () => void): Timer {
    const timer: FakeTimer = { at: this.#now + Math.max(0, ms), fire };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  soon(fire: () => void): void {
    this.after(0, fire);
  }

  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      let next: FakeTimer | undefined;
      for (const timer of this.#timers) {
        if (timer.at <= end && (next === undefined || timer.at < next.at)) next = timer;
      }
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.fire();
    }
    this.#now = end;
  }

  /** The event loop stands still until then: timers fire late, then `reads` runs, then what was put off for after it. */
  heldUpUntil(now: number, reads: () => void): void {
    this.#now = now;
    const late = [...this.#timers].filter(({ at }) => at <= now);
    for (const timer of late) {
      this.#timers.delete(timer);
      timer.fire();
    }
    reads();
    this.advance(0);
  }
}

/** Lets every promise reaction that is due run, without moving any clock. */
export async function ticks(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
