/** Pseudo-random draws for fuzzers: splitmix32, so that a printed seed repeats a run exactly. */

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 … 2^32 - 1 */
  word(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }

  /** 0 … end - 1 */
  below(end: number): number {
    return this.word() % end;
  }

  chance(oneIn: number): boolean {
    return this.below(oneIn) === 0;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("pick from an empty list");
    return item;
  }
}

/** The seed of a fuzz run: FUZZ_SEED to repeat one, else a fresh one. Failing runs name it. */
export function fuzzSeed(): number {
  const { FUZZ_SEED: given } = process.env;
  return given === undefined ? (Date.now() ^ (process.pid << 16)) >>> 0 : Number(given) >>> 0;
}

/** Rounds of a fuzz run: FUZZ_ROUNDS for a long one, else the smoke run's. */
export function fuzzRounds(smoke: number): number {
  const { FUZZ_ROUNDS: given } = process.env;
  return given === undefined ? smoke : Number(given);
}
