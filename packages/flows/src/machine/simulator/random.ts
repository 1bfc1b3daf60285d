/** Pseudo-random draws, repeatable by their seed (splitmix32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 … end - 1 */
  below(end: number): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) % end;
  }

  between(first: number, last: number): number {
    return first + this.below(last - first + 1);
  }

  /** True in so many of a hundred draws. */
  percent(chance: number): boolean {
    return this.below(100) < chance;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("pick from an empty list");
    return item;
  }
}

/** Mixes a number into a state: what a guest has seen so far, in one word. */
export function mix(state: number, by: number): number {
  let z = Math.imul(state ^ by, 0x9e3779b1);
  z = Math.imul(z ^ (z >>> 15), 0x85ebca6b);
  return (z ^ (z >>> 13)) >>> 0;
}

export function mixText(state: number, text: string): number {
  let mixed = state;
  for (let at = 0; at < text.length; at++) mixed = mix(mixed, text.charCodeAt(at));
  return mixed;
}
