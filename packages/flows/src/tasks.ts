/** Promises that are under way and that nobody waits for, until somebody closes what they belong to. */

export class Tasks {
  readonly #tasks = new Set<Promise<void>>();

  add(task: Promise<unknown>, onError: (error: unknown) => void): void {
    const owned: Promise<void> = task
      .then(() => undefined, onError)
      .finally(() => {
        this.#tasks.delete(owned);
      });
    this.#tasks.add(owned);
  }

  /** Those that come meanwhile are waited for too. */
  async settled(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }
}
