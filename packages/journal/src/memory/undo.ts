/**
 * Changes to the maps and objects of the memory store that can be taken back: a refused unit leaves no trace. Every write of
 * a unit goes through here; reads do not.
 */

export class Undo {
  readonly #steps: (() => void)[] = [];

  /** Puts an entry at the end of the map, or replaces the one that is there. */
  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    if (map.has(key)) {
      const old = map.get(key) as V; // has() said that it is there
      this.#steps.push(() => map.set(key, old));
    } else {
      this.#steps.push(() => map.delete(key));
    }
    map.set(key, value);
  }

  /** Only for maps whose order means nothing: an entry that comes back is the last. */
  delete<K, V>(map: Map<K, V>, key: K): boolean {
    const old = map.get(key);
    if (old === undefined) return false;
    map.delete(key);
    this.#steps.push(() => map.set(key, old));
    return true;
  }

  push<V>(list: V[], value: V): void {
    list.push(value);
    this.#steps.push(() => list.pop());
  }

  assign<T extends object, K extends keyof T>(target: T, key: K, value: T[K]): void {
    const old = target[key];
    target[key] = value;
    this.#steps.push(() => {
      target[key] = old;
    });
  }

  rollback(): void {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) step();
  }
}
