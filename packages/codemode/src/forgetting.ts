/**
 * What a journal in memory may forget, where no program gave a store: then nobody but the codemode sees it, and it must not grow
 * with every execution. journal-runs.ts tells it what happens to executions.
 *
 * Kept true: an execution that nobody can ask for again (never suspended, under no key) is gone as soon as whoever waits for it
 * has read it; of the others as many are kept as the bounds allow, the oldest go first; nothing unfinished is forgotten.
 */

import type { MemoryStore, RunRow } from "@flowcell/journal";

/** Texts of executions that are kept for those who ask again. */
const keptBytesMost = 64 * 1024 * 1024;
const keptRunsMost = 1000;
/** Texts of executions that wait for an answer: no further one begins beyond it. */
const waitingBytesMost = 256 * 1024 * 1024;

export interface ForgettingBounds {
  readonly keptBytes?: number;
  readonly keptRuns?: number;
  readonly waitingBytes?: number;
}

export class Forgetting {
  readonly #store: MemoryStore;
  readonly #bounds: Required<ForgettingBounds>;
  /** How many wait for each execution. */
  readonly #held = new Map<string, number>();
  /** Suspended at some time and not finished, and what their journals hold. */
  readonly #suspended = new Map<string, number>();
  /** Finished while somebody still waited, and whether somebody may ask again. */
  readonly #ended = new Map<string, boolean>();
  /** Finished and kept, the oldest first, and what their journals hold. */
  readonly #kept = new Map<string, number>();
  #keptBytes = 0;
  #waitingBytes = 0;

  constructor(store: MemoryStore, bounds: ForgettingBounds = {}) {
    this.#store = store;
    this.#bounds = {
      keptBytes: bounds.keptBytes ?? keptBytesMost,
      keptRuns: bounds.keptRuns ?? keptRunsMost,
      waitingBytes: bounds.waitingBytes ?? waitingBytesMost,
    };
  }

  /** What is wrong with one execution more, or undefined. */
  full(): string | undefined {
    const { waitingBytes } = this.#bounds;
    if (this.#waitingBytes < waitingBytes) return undefined;
    return `executions that wait for an answer hold ${this.#waitingBytes} bytes; answer or cancel some (codemode.pending())`;
  }

  /** Somebody waits for the execution, until `release`. */
  hold(runId: string): void {
    this.#held.set(runId, (this.#held.get(runId) ?? 0) + 1);
  }

  release(runId: string): void {
    const others = (this.#held.get(runId) ?? 1) - 1;
    if (others > 0) {
      this.#held.set(runId, others);
      return;
    }
    this.#held.delete(runId);
    const mayBeAsked = this.#ended.get(runId);
    if (mayBeAsked !== undefined) this.#settle(runId, mayBeAsked);
  }

  suspended({ runId }: RunRow): void {
    const before = this.#suspended.get(runId) ?? 0;
    const bytes = this.#store.bytesOf(runId);
    this.#suspended.set(runId, bytes);
    this.#waitingBytes += bytes - before;
  }

  /** Called once, when the journal has the end. */
  finished({ runId, deduplicationKey }: RunRow): void {
    const waited = this.#suspended.get(runId);
    this.#suspended.delete(runId);
    this.#waitingBytes -= waited ?? 0;
    const mayBeAsked = waited !== undefined || deduplicationKey !== null;
    if (this.#held.has(runId)) this.#ended.set(runId, mayBeAsked);
    else this.#settle(runId, mayBeAsked);
  }

  /** Something came for an execution that has ended: nobody will look at it. */
  late(runId: string): void {
    if (!this.#kept.has(runId) && !this.#ended.has(runId)) this.#store.forget(runId);
  }

  #settle(runId: string, mayBeAsked: boolean): void {
    this.#ended.delete(runId);
    if (!mayBeAsked) {
      this.#store.forget(runId);
      return;
    }
    const bytes = this.#store.bytesOf(runId);
    this.#kept.set(runId, bytes);
    this.#keptBytes += bytes;
    const { keptBytes, keptRuns } = this.#bounds;
    for (const [oldest, held] of this.#kept) {
      // The last one is kept whatever it holds: who has its result may ask once more.
      const fits = this.#keptBytes <= keptBytes && this.#kept.size <= keptRuns;
      if (fits || oldest === runId) break;
      if (this.#held.has(oldest)) continue;
      this.#kept.delete(oldest);
      this.#keptBytes -= held;
      this.#store.forget(oldest);
    }
  }
}
