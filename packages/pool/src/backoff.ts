/**
 * When the next worker may be started after a start that failed.
 *
 * Used by the pool. A host that cannot start confined workers (a missing control, a broken binary, no
 * processes left) must not be hammered: the pause begins at 250 ms, doubles with every failure in a row up to
 * 30 s, and one accepted worker ends it.
 */
const firstPauseMs = 250;
const longestPauseMs = 30_000;

export class StartBackoff {
  #failures = 0;
  #notBefore = Number.NEGATIVE_INFINITY;

  /** Failures since the last accepted worker. */
  get failures(): number {
    return this.#failures;
  }

  /** Monotonic time before which nothing may be started. */
  get notBefore(): number {
    return this.#notBefore;
  }

  failed(nowMs: number): void {
    this.#failures += 1;
    // 2^7 × 250 ms is already past the longest pause; the cap on the exponent keeps the product finite.
    const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(16, this.#failures - 1));
    this.#notBefore = Math.max(this.#notBefore, nowMs + pause);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#notBefore = Number.NEGATIVE_INFINITY;
  }
}
