/**
 * What the pool counts for flow.health: starts refused, workers killed and lost, by reason and by flow.
 *
 * Kept true: the number of keys is bounded. Reasons come from closed tables and names of facts; flows come from callers,
 * so beyond `flowsMax` the counts of a further flow go to one common row.
 */
const flowsMax = 1000;
const keysMax = 256;

/** The row of flows beyond the bound. Not a legal flow id, so it cannot be mistaken for one. */
const otherFlows = "(other flows)";

export interface FlowDeaths {
  /** Workers killed by the system call filter. */
  readonly sigsysDeaths: number;
  /** Engine traps, memory faults, failed assertions. */
  readonly trapDeaths: number;
  /** Workers killed by the pool for what they sent or did. */
  readonly violations: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export class Counters {
  readonly #byKey = new Map<string, number>();
  readonly #byFlow = new Map<string, Mutable<FlowDeaths>>();

  count(key: string): void {
    const known = this.#byKey.get(key);
    if (known === undefined && this.#byKey.size >= keysMax) {
      this.count("other");
      return;
    }
    this.#byKey.set(key, (known ?? 0) + 1);
  }

  countFlow(flow: string | null, what: keyof FlowDeaths): void {
    if (flow === null) return;
    let row = this.#byFlow.get(flow);
    if (row === undefined) {
      const name = this.#byFlow.size < flowsMax ? flow : otherFlows;
      row = this.#byFlow.get(name) ?? { sigsysDeaths: 0, trapDeaths: 0, violations: 0 };
      this.#byFlow.set(name, row);
    }
    row[what] += 1;
  }

  /** Counts whose key begins with `prefix`, without it. */
  under(prefix: string): Readonly<Record<string, number>> {
    const found: [string, number][] = [];
    for (const [key, value] of this.#byKey)
      if (key.startsWith(prefix)) found.push([key.slice(prefix.length), value]);
    return Object.fromEntries(found);
  }

  flows(): Readonly<Record<string, FlowDeaths>> {
    return Object.fromEntries([...this.#byFlow].map(([flow, row]) => [flow, { ...row }]));
  }
}
