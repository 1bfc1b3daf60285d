/** Callers that wait for a run to finish or to be suspended. Every one of them is settled when the service closes or fails. */

import type { RunRow } from "@flowcell/journal";

type Settle = (state: "changed" | "closed" | { readonly error: unknown }) => void;

export class Watchers {
  readonly #byRun = new Map<string, Set<Settle>>();
  #over: "closed" | { readonly error: unknown } | null = null;

  /**
   * Resolves when something became of the run, the signal aborts, or the service closes; rejects when the store failed.
   * Register before looking at the run: what happens after that is not missed.
   */
  watch(runId: string, signal: AbortSignal | undefined): { readonly changed: Promise<void>; leave(): void } {
    let leave = (): void => undefined;
    const changed = new Promise<void>((resolve, reject) => {
      const settle: Settle = (state) => {
        leave();
        if (typeof state === "object") reject(state.error);
        else resolve();
      };
      const onAbort = (): void => settle("changed");
      leave = (): void => {
        signal?.removeEventListener("abort", onAbort);
        const watching = this.#byRun.get(runId);
        watching?.delete(settle);
        if (watching?.size === 0) this.#byRun.delete(runId);
      };
      if (this.#over !== null) settle(this.#over);
      else if (signal?.aborted === true) settle("changed");
      else {
        const watching = this.#byRun.get(runId) ?? new Set<Settle>();
        watching.add(settle);
        this.#byRun.set(runId, watching);
        signal?.addEventListener("abort", onAbort, { once: true });
      }
    });
    // Somebody who leaves does not look at it any more.
    changed.catch(() => undefined);
    return { changed, leave: () => leave() };
  }

  get over(): boolean {
    return this.#over !== null;
  }

  notify({ runId }: Pick<RunRow, "runId">): void {
    for (const settle of [...(this.#byRun.get(runId) ?? [])]) settle("changed");
  }

  close(): void {
    this.#end("closed");
  }

  fail(error: unknown): void {
    this.#end({ error });
  }

  #end(over: "closed" | { readonly error: unknown }): void {
    this.#over ??= over;
    for (const watching of [...this.#byRun.values()]) for (const settle of [...watching]) settle(over);
  }
}
