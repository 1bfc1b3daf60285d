/**
 * Ends questions that nobody answers in time: the call that was asked about fails with `timeout`, and its script goes on.
 * journal-runs.ts starts it when it opens and with each execution that is suspended.
 *
 * The wait in the journal has no time limit: the engine keeps a worker for what may end by time, and an approval would hold one
 * for hours. Kept true: a question that an earlier process asked counts from when it was asked; an idle codemode never keeps the
 * process alive for it.
 */

import type { Runner } from "@flowcell/flows";
import type { Store } from "@flowcell/journal";
import { unansweredOutcome } from "./approval-calls.js";

export interface UnansweredParts {
  readonly store: Store;
  /** Whose executions these are in the store. */
  readonly name: string;
  readonly approvalMs: number;
  runner(): Runner;
}

/** The longest that a timer can be set for. */
const timerMsMost = 2 ** 31 - 1;

export class Unanswered {
  readonly #parts: UnansweredParts;
  #timer: NodeJS.Timeout | undefined;
  /** Whether something was suspended since the store was asked. */
  #more = false;
  #closed = false;

  constructor(parts: UnansweredParts) {
    this.#parts = parts;
  }

  /** Questions may be open: the next one asked is at least `approvalMs` away from its end, so that a timer set before fits. */
  watch(): void {
    this.#more = true;
    if (this.#timer === undefined) this.#look();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #look(): void {
    if (this.#closed) return;
    // A store that fails is told by the next execution.
    this.#more = false;
    const { approvalMs } = this.#parts;
    this.#set(approvalMs);
    this.#endDue().then(
      (dueInMs) => {
        clearTimeout(this.#timer);
        this.#timer = undefined;
        if (dueInMs !== null || this.#more) this.#set(dueInMs ?? approvalMs);
      },
      () => undefined,
    );
  }

  #set(ms: number): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => this.#look(), Math.min(timerMsMost, Math.max(1, ms)));
    this.#timer.unref();
  }

  /** Milliseconds until the next question is due; null when none is open. */
  async #endDue(): Promise<number | null> {
    const { store, name, approvalMs, runner } = this.#parts;
    let next: number | null = null;
    for (const { runId, flow, position, wait, callId, madeAt } of await store.waits()) {
      if (flow !== name || wait.kind !== "approval" || callId === null) continue;
      const left = madeAt + approvalMs - Date.now();
      if (left > 0) next = Math.min(next ?? left, left);
      else runner().waitDone(runId, position, unansweredOutcome(wait.title, approvalMs));
    }
    return next;
  }
}
