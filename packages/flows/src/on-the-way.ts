/**
 * Answers that are on their way, by what they answer: the same one again shares the end of the first, a different one is
 * refused. Used by the operations that tell a run something which counts once.
 */

import { OperationError } from "./ports.js";

export class OnTheWay<Done> {
  readonly #byKey = new Map<string, { readonly text: string; readonly done: Promise<Done> }>();

  /** `text` tells a same answer from a different one; `what` is what is being answered. */
  async share(key: string, text: string, what: string, work: () => Promise<Done>): Promise<Done> {
    const other = this.#byKey.get(key);
    if (other !== undefined) {
      if (other.text !== text) throw new OperationError("conflict", `${what} is being answered differently`);
      return await other.done;
    }
    const done = work();
    this.#byKey.set(key, { text, done });
    try {
      return await done;
    } finally {
      this.#byKey.delete(key);
    }
  }
}
