/**
 * Names that are being looked up by the operating system, for every flow of this process. A lookup holds one of the few
 * threads that files are read and written on too, for as long as a name server takes to answer or not to: so no more than
 * `atOnce` are under way, and one for each owner, that a flow of slow names delays itself and not the others.
 *
 * Kept true: owners take turns; a name that an owner asks for while it is being looked up is not asked for again; one that
 * nobody waits for any more is not looked up at all.
 */

export type Lookup = (host: string) => Promise<readonly string[]>;

interface Asked {
  readonly host: string;
  readonly answer: Promise<readonly string[]>;
  readonly settle: (answer: Promise<readonly string[]>) => void;
  /** How many wait for it. */
  askers: number;
}

export class Lookups {
  readonly #lookup: Lookup;
  readonly #atOnce: number;
  readonly #running = new Map<object, Asked>();
  /** What waits, by owner; the owner whose turn it is first. */
  readonly #waiting = new Map<object, Asked[]>();

  constructor(lookup: Lookup, atOnce: number) {
    this.#lookup = lookup;
    this.#atOnce = atOnce;
  }

  /** All addresses of a name. Whoever aborts hears nothing more. */
  ask(owner: object, host: string, signal: AbortSignal): Promise<readonly string[]> {
    const running = this.#running.get(owner);
    if (running?.host === host) return running.answer;
    const waiting = this.#waiting.get(owner) ?? [];
    this.#waiting.set(owner, waiting);
    const asked = waiting.find((one) => one.host === host) ?? newAsked(host);
    if (asked.askers === 0) waiting.push(asked);
    asked.askers += 1;
    const leave = (): void => this.#leave(owner, asked);
    signal.addEventListener("abort", leave, { once: true });
    const left = (): void => signal.removeEventListener("abort", leave);
    asked.answer.then(left, left);
    this.#next();
    return asked.answer;
  }

  #leave(owner: object, asked: Asked): void {
    asked.askers -= 1;
    const waiting = this.#waiting.get(owner);
    const at = waiting?.indexOf(asked) ?? -1;
    if (asked.askers > 0 || at < 0) return;
    waiting?.splice(at, 1);
    if (waiting?.length === 0) this.#waiting.delete(owner);
  }

  #next(): void {
    for (const [owner, waiting] of [...this.#waiting]) {
      if (this.#running.size >= this.#atOnce) return;
      if (this.#running.has(owner)) continue;
      const asked = waiting.shift();
      // To the end of the turns.
      this.#waiting.delete(owner);
      if (waiting.length > 0) this.#waiting.set(owner, waiting);
      if (asked !== undefined) this.#begin(owner, asked);
    }
  }

  #begin(owner: object, asked: Asked): void {
    this.#running.set(owner, asked);
    const answer = this.#lookup(asked.host);
    asked.settle(answer);
    const over = (): void => {
      this.#running.delete(owner);
      this.#next();
    };
    answer.then(over, over);
  }
}

function newAsked(host: string): Asked {
  let settle: Asked["settle"] = () => undefined;
  const answer = new Promise<readonly string[]>((resolve) => {
    settle = resolve;
  });
  return { host, answer, settle, askers: 0 };
}
