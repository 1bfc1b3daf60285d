/** What is yet to happen in a simulation, by time; what has the same time happens in the order in which it was put in. */

/** What it returns is awaited. */
export type Action = () => unknown;

interface Entry {
  readonly at: number;
  readonly number: number;
  readonly act: Action;
}

export class Queue {
  readonly #heap: Entry[] = [];
  #number = 0;

  get length(): number {
    return this.#heap.length;
  }

  put(at: number, act: Action): void {
    const entry = { at, number: this.#number++, act };
    const heap = this.#heap;
    let place = heap.length;
    heap.push(entry);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const other = heap[parent];
      if (other === undefined || before(other, entry)) break;
      heap[place] = other;
      place = parent;
    }
    heap[place] = entry;
  }

  take(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      let least = heap[child];
      if (least === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && before(right, least)) {
        child += 1;
        least = right;
      }
      if (before(last, least)) break;
      heap[place] = least;
      place = child;
    }
    heap[place] = last;
    return first;
  }
}

function before(one: Entry, other: Entry): boolean {
  return one.at < other.at || (one.at === other.at && one.number < other.number);
}
