/**
 * The pool's clocks and its one way to wait.
 *
 * Used by every part of the pool that measures or waits; tests put a clock of their own in its place.
 * The clock never goes back, so a change of the system's time moves no deadline. Nothing that this interface starts
 * keeps the Node process alive: what does that is KeepAlive, in one place, while somebody waits for an answer.
 */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  monotonicMs(): number;
  after(ms: number, fire: () => void): Timer;
  /** In the next turn of the event loop. */
  soon(fire: () => void): void;
}

/** The largest delay that Node's timers take; a longer one would fire at once. */
const delayMaxMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  after(ms, fire) {
    const timer = setTimeout(fire, Math.min(delayMaxMs, Math.max(1, Math.ceil(ms))));
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  soon(fire) {
    // Not unreferenced: the event loop would wait for another event before it got to it, however long that takes. It
    // keeps the process alive for this one turn.
    setImmediate(fire);
  },
};

/**
 * Keeps the Node process alive while at least one holder waits, and lets it end otherwise. Worker pipes and
 * deadline timers are all unreferenced, so this is the only thing in the pool that holds the event loop.
 */
export class KeepAlive {
  readonly #timer: NodeJS.Timeout;
  #holders = 0;

  constructor() {
    this.#timer = setInterval(() => {}, delayMaxMs);
    this.#timer.unref();
  }

  hold(): void {
    this.#holders += 1;
    if (this.#holders === 1) this.#timer.ref();
  }

  release(): void {
    this.#holders -= 1;
    if (this.#holders < 0) throw new Error("KeepAlive released more often than held: a bug in the pool");
    if (this.#holders === 0) this.#timer.unref();
  }

  /** Ends it for good; the owner is closed and holds nothing. */
  dispose(): void {
    clearInterval(this.#timer);
  }
}
