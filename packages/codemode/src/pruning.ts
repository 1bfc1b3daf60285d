/**
 * Finished executions of a program's own store, removed by age or number when the program says so. journal-runs.ts asks when it
 * opens and as executions end.
 *
 * Kept true: nothing of another name in the store is removed, and nothing unfinished; what a program did not ask to be removed
 * stays for ever.
 */

import type { Store } from "@flowcell/journal";

export interface KeepBounds {
  /** Finished longer ago than this: removed. */
  readonly keepMs?: number;
  /** More than these: the oldest are removed. */
  readonly keepRuns?: number;
}

/** Removed at a time: a store is not held up by much that is old. */
const batch = 100;
/** Between two looks at the age of what is there. */
const lookMsMost = 60_000;

export class Pruning {
  readonly #store: Store;
  readonly #flow: string;
  readonly #keep: KeepBounds;
  #since = 0;
  #lookedAt = 0;
  #going: Promise<void> | null = null;
  #closed = false;

  /** Null for a program that keeps everything. */
  static of(store: Store, flow: string, keep: KeepBounds): Pruning | null {
    if (keep.keepMs === undefined && keep.keepRuns === undefined) return null;
    return new Pruning(store, flow, keep);
  }

  constructor(store: Store, flow: string, keep: KeepBounds) {
    this.#store = store;
    this.#flow = flow;
    this.#keep = keep;
  }

  /** An execution more has ended. */
  finished(): void {
    this.#since += 1;
    if (this.#going === null && this.#isDue()) {
      // A store that fails is told by the next execution.
      this.#going = this.prune().then(
        () => this.#done(),
        () => this.#done(),
      );
    }
  }

  async prune(): Promise<void> {
    this.#since = 0;
    this.#lookedAt = Date.now();
    const { keepMs, keepRuns } = this.#keep;
    if (keepMs !== undefined) await this.#remove(Date.now() - keepMs);
    if (keepRuns !== undefined) await this.#remove(await this.#beginOf(keepRuns));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#going;
  }

  #done(): void {
    this.#going = null;
    // Those that ended meanwhile.
    if (!this.#closed && this.#since > 0 && this.#isDue()) this.finished();
  }

  /** Not at every end: a tenth more than was asked for may be there. */
  #isDue(): boolean {
    const { keepMs, keepRuns } = this.#keep;
    if (keepRuns !== undefined && this.#since >= Math.max(1, keepRuns / 10)) return true;
    return keepMs !== undefined && Date.now() - this.#lookedAt >= Math.min(lookMsMost, keepMs / 10);
  }

  /** When the oldest of the newest so many ended. */
  async #beginOf(keepRuns: number): Promise<number> {
    let earliest = Number.POSITIVE_INFINITY;
    let left = keepRuns;
    let before: string | undefined;
    while (left > 0 && !this.#closed) {
      const page = await this.#store.runs({
        flow: this.#flow,
        states: ["finished"],
        limit: Math.min(batch, left),
        ...(before === undefined ? {} : { before }),
      });
      for (const { finishedAt } of page) earliest = Math.min(earliest, finishedAt ?? earliest);
      left -= page.length;
      before = page.at(-1)?.runId;
      // Fewer are there.
      if (page.length < Math.min(batch, left + page.length)) return 0;
    }
    return this.#closed ? 0 : earliest;
  }

  async #remove(finishedBefore: number): Promise<void> {
    const retention = { finishedBefore, runsMax: batch, flow: this.#flow };
    while (!this.#closed && finishedBefore > 0 && (await this.#store.retain(retention)) === batch) {
      // The next ones.
    }
  }
}
