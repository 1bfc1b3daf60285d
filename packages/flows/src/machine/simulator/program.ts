/** The programs of simulated guests: small trees made from a seed, with everything that scripts do with host calls and time. */

import type { Random } from "./random.js";

export const callNames = [
  "kv.get",
  "kv.set",
  "read",
  "keyed",
  "once",
  "proven",
  "sleep",
  "signal",
  "signal.timed",
  "approval",
  "denied",
] as const;
export type CallName = (typeof callNames)[number];

export interface CallNode {
  readonly kind: "call";
  readonly id: number;
  readonly name: CallName;
  /** For waits: how long at most. For signals also which. */
  readonly ms: number;
}

export type Node =
  | CallNode
  | { readonly kind: "timer"; readonly ms: number }
  | { readonly kind: "interval"; readonly ms: number; readonly times: number }
  | { readonly kind: "all" | "race" | "any" | "settled" | "seq"; readonly of: readonly Node[] }
  | { readonly kind: "caught"; readonly of: Node }
  | { readonly kind: "loop"; readonly times: number; readonly of: Node }
  /** Started and not awaited. */
  | { readonly kind: "loose"; readonly of: Node }
  /** The call is given up when the other has ended, if it has no outcome by then. */
  | { readonly kind: "cancelled"; readonly call: CallNode; readonly by: Node }
  | { readonly kind: "log" }
  | { readonly kind: "throw" };

const groups = ["all", "race", "any", "settled", "seq"] as const;
const effectful: readonly CallName[] = ["keyed", "once", "proven", "keyed", "once", "read"];

export class ProgramMaker {
  readonly #random: Random;
  #nextId = 0;
  #left: number;

  constructor(random: Random) {
    this.#random = random;
    this.#left = random.between(2, 9);
  }

  make(): Node {
    const of: Node[] = [];
    while (this.#left > 0 && of.length < 5) of.push(this.#node(3));
    return { kind: "seq", of };
  }

  #node(depth: number): Node {
    const random = this.#random;
    const draw = random.below(100);
    if (depth === 0 || draw < 46) return this.#call();
    if (draw < 54) return { kind: "timer", ms: this.#delay() };
    if (draw < 56) return { kind: "interval", ms: random.between(1, 40), times: random.between(1, 3) };
    if (draw < 80) return { kind: random.pick(groups), of: this.#several(depth) };
    if (draw < 85) return { kind: "caught", of: this.#node(depth - 1) };
    if (draw < 88) return { kind: "loop", times: random.between(2, 3), of: this.#node(depth - 1) };
    if (draw < 91) return { kind: "loose", of: this.#node(depth - 1) };
    if (draw < 95) return { kind: "cancelled", call: this.#call(), by: this.#node(depth - 1) };
    if (draw < 99) return { kind: "log" };
    return { kind: "throw" };
  }

  #several(depth: number): Node[] {
    const of: Node[] = [];
    for (let count = this.#random.between(2, 4); count > 0; count--) of.push(this.#node(depth - 1));
    return of;
  }

  #call(): CallNode {
    this.#left -= 1;
    const random = this.#random;
    const name = random.percent(55) ? random.pick(effectful) : random.pick(callNames);
    return { kind: "call", id: this.#nextId++, name, ms: this.#delay() };
  }

  #delay(): number {
    const random = this.#random;
    return random.percent(80) ? random.between(0, 300) : random.between(1_000, 20_000);
  }
}
