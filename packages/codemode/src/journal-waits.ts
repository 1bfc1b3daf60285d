/**
 * Whoever waits for executions that are journaled: told when the journal has something new of one, answered with its result when
 * it has come as far as wanted. journal-runs.ts tells it of commits and of the end.
 *
 * Kept true: every waiter is answered, also when the codemode is closed, when the store fails and when its caller gives up.
 */

import { mapConsoleText, notStarted, type ScriptMap } from "@flowcell/bundle";
import type { RunHistory, RunRow, Store } from "@flowcell/journal";
import { outcomeOf } from "./approval-calls.js";
import type { Forgetting } from "./forgetting.js";
import { misuse } from "./journal-answers.js";
import { journalResult, type SeenUsage } from "./journal-result.js";
import { keptOf } from "./kept-run.js";
import type { ExecuteResult } from "./result.js";
import { newRunId } from "./run-id.js";
import type { Wording } from "./wording.js";

export interface WaitsParts {
  readonly store: Store;
  readonly forgetting: Forgetting | null;
  readonly wording: Wording;
  seen(runId: string): SeenUsage;
  mapOf(runId: string): ScriptMap | undefined;
}

export class JournalWaits {
  readonly #parts: WaitsParts;
  readonly #watchers = new Map<string, Set<() => void>>();
  #over: string | undefined;

  constructor(parts: WaitsParts) {
    this.#parts = parts;
  }

  /** Why nothing more is done; undefined while it is. */
  get over(): string | undefined {
    return this.#over;
  }

  notify(runId: string): void {
    const watching = this.#watchers.get(runId);
    this.#watchers.delete(runId);
    for (const resolve of watching ?? []) resolve();
  }

  /** Nothing more begins; whoever waits is told with `end`. */
  stop(why: string): void {
    this.#over ??= why;
  }

  end(why: string): void {
    this.stop(why);
    for (const runId of [...this.#watchers.keys()]) this.notify(runId);
  }

  /** The result as soon as the run is as wanted. */
  async result(runId: string, wanted: (run: RunRow) => boolean): Promise<ExecuteResult> {
    const { forgetting, store } = this.#parts;
    forgetting?.hold(runId);
    try {
      for (;;) {
        const changed = this.changed(runId);
        const run = await store.run(runId);
        if (run === null) return misuse(runId, "not_found", "the execution was removed");
        const result = wanted(run) ? await this.#resultOf(runId) : undefined;
        if (result !== undefined) return result;
        if (this.#over !== undefined) return ended("cancelled", "closing", this.#over, runId);
        await changed;
      }
    } finally {
      forgetting?.release(runId);
    }
  }

  /** What a step does, whatever fails in it. */
  async guarded(step: () => Promise<ExecuteResult>): Promise<ExecuteResult> {
    try {
      return await step();
    } catch (error) {
      const failure = `flowcell failed: ${error instanceof Error ? error.message : String(error)}`;
      return ended("internal", "bug", this.#over ?? failure);
    }
  }

  /** Undefined for a run that goes on by itself. */
  async #resultOf(runId: string): Promise<ExecuteResult | undefined> {
    const { store, seen, wording } = this.#parts;
    const [history, logs] = await Promise.all([store.history(runId), store.logs(runId)]);
    if (history === null) return misuse(runId, "not_found", "the execution was removed");
    if (!isOver(history.run) || (history.run.status === "suspended" && !asksSomebody(history)))
      return undefined;
    const map = this.#parts.mapOf(runId);
    const result = journalResult(history, logs, keptOf(history.run).code, seen(runId));
    if (map === undefined) return wording.result(result);
    const mapped = result.logs.map((line) => ({ ...line, text: mapConsoleText(line.text, map) }));
    return wording.result({ ...result, logs: mapped });
  }

  /** Resolves with the next thing that the journal has of it. */
  changed(runId: string): Promise<void> {
    return new Promise((resolve) => {
      const watching = this.#watchers.get(runId) ?? new Set();
      watching.add(resolve);
      this.#watchers.set(runId, watching);
    });
  }
}

/** An execution that ends, or a request that ends, without the journal. */
export function ended(
  status: "cancelled" | "internal",
  code: string,
  message: string,
  runId = newRunId(),
): ExecuteResult {
  return notStarted(runId, status, { code, message });
}

export function isOver({ state }: RunRow): boolean {
  return state === "finished" || state === "suspended";
}

export function asksSomebody(history: RunHistory): boolean {
  return history.calls.some(
    ({ callId, position, cancelled }) =>
      callId !== null && !cancelled && outcomeOf(history, position) === undefined,
  );
}
