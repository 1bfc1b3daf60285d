/**
 * Executions that are journaled: because a tool may ask for approval, or because the program gave a store. Each is a run of the
 * engine of flows; its script is the run's input, so that any later process can go on with it. codemode.ts sends here what
 * execute.ts cannot do.
 *
 * Kept true: every waiter is settled, also when the codemode is closed or the store fails; an execution under a key is made once,
 * and again only when it never began.
 */

import { randomBytes } from "node:crypto";
import { bundleFailed, notStarted } from "@flowcell/bundle";
import {
  createRunner,
  errorMapper,
  type Gate,
  observedStore,
  type Runnable,
  type Runner,
} from "@flowcell/flows";
import type { HostFunction } from "@flowcell/host";
import type { MemoryStore, RunHistory, RunRow, Store } from "@flowcell/journal";
import type { ConfinedPool } from "@flowcell/pool";
import { type Limits, limitCeilings, parseLimits } from "@flowcell/protocol";
import { defaultBuildFolder, readWorkerBuild } from "@flowcell/sandbox";
import { refuse, requestProblem, type SentLimits, sentLimits } from "./execute.js";
import { Forgetting } from "./forgetting.js";
import { JournalRequests } from "./journal-requests.js";
import { ended, isOver, JournalWaits } from "./journal-waits.js";
import { type Kept, keptBytes, keptOf, manifest, newRun } from "./kept-run.js";
import { otherScript, watched } from "./keyed-results.js";
import { LiveCells } from "./live-cells.js";
import type { Normalizer, NormalResult, NormalScript } from "./normalize.js";
import type { ExecuteOptions } from "./options.js";
import { type KeepBounds, Pruning } from "./pruning.js";
import type { ExecuteResult } from "./result.js";
import { newRunId } from "./run-id.js";
import { Unanswered } from "./unanswered.js";
import type { Wording } from "./wording.js";

export interface JournalParts {
  readonly pool: ConfinedPool;
  /** A program's own, or one in memory that nobody else sees: there what nobody can ask for is forgotten. */
  readonly store: { readonly given: Store } | { readonly own: MemoryStore };
  /** Whose runs these are in the store. */
  readonly name: string;
  readonly functions: readonly HostFunction[];
  readonly normalizer: Normalizer;
  readonly wording: Wording;
  readonly limits: Limits;
  readonly ceilings: Limits;
  readonly isolation: "process" | "reset";
  readonly flow: string;
  /** How long a question waits for its answer. */
  readonly approvalMs: number;
  /** Of a program's own store. */
  readonly keep: KeepBounds;
  /** Executions that may run or wait for a worker. */
  readonly activeMost: number;
}

/** Executions that may wait for an answer: each holds its journal. */
const unfinishedMost = 10_000;
const closed = "the codemode is closed";
const removedUnderKey =
  "the execution under this idempotencyKey was removed from the store (keepMs, keepRuns); use another key to execute the script again";

interface Made {
  readonly created: boolean;
  readonly runId: string;
  readonly versionHash: string;
}

export class JournalRuns {
  readonly #parts: JournalParts;
  readonly #names: readonly string[];
  readonly #sent: SentLimits;
  readonly #store: Store;
  readonly #cells: LiveCells;
  readonly #waits: JournalWaits;
  readonly #forgetting: Forgetting | null;
  readonly #pruning: Pruning | null;
  readonly #unanswered: Unanswered;
  readonly #requests: JournalRequests;
  readonly #unfinished = new Set<string>();
  #runner: Runner | undefined;

  constructor(parts: JournalParts) {
    this.#parts = parts;
    this.#names = Object.freeze(parts.functions.map(({ name }) => name).sort());
    this.#sent = sentLimits(parts.limits, parts.normalizer);
    this.#cells = new LiveCells(parts);
    const { store } = parts;
    this.#forgetting = "own" in store ? new Forgetting(store.own) : null;
    this.#store = observedStore("own" in store ? store.own : store.given, ({ fence, operations }) => {
      if (fence !== undefined) this.#waits.notify(fence.runId);
      for (const one of operations) if (one.kind === "quarantine") this.#forgetting?.late(one.row.runId);
    });
    this.#pruning = "own" in store ? null : Pruning.of(store.given, parts.name, parts.keep);
    this.#waits = new JournalWaits({
      store: this.#store,
      forgetting: this.#forgetting,
      wording: parts.wording,
      seen: (runId) => this.#cells.seen(runId),
      mapOf: (runId) => this.#cells.mapOf(runId),
    });
    const { name } = parts;
    const runner = (): Runner => this.#opened();
    const { approvalMs } = parts;
    this.#unanswered = new Unanswered({ store: this.#store, name, approvalMs, runner });
    this.#requests = new JournalRequests({ store: this.#store, name, waits: this.#waits, runner });
  }

  /** Takes up what an earlier process left. */
  async open(): Promise<void> {
    await this.#pruning?.prune();
    const left = await this.#store.unfinished();
    for (const { runId, flow } of left) {
      if (flow !== this.#parts.name) continue;
      this.#unfinished.add(runId);
      this.#opened().adopt(runId);
    }
    this.#unanswered.watch();
  }

  async execute(code: unknown, options: ExecuteOptions): Promise<ExecuteResult> {
    const problem = requestProblem(code, options);
    if (problem !== undefined || typeof code !== "string")
      return refuse("request", problem ?? "the code must be a text");
    const { limits, label, signal } = options;
    const sent = this.#limitsOf(limits);
    if (typeof sent === "string") return refuse("limits", sent);
    const normal = await this.#normal(code, label, sent.asked);
    if (!normal.ok) return bundleFailed(newRunId(), normal.failure);
    const opened = this.#parts.pool.open();
    if (!opened.ok) return notStarted(newRunId(), "sandbox_unavailable", opened.failure);
    if (signal?.aborted === true) return ended("cancelled", "caller", "the caller cancelled");
    const { over } = this.#waits;
    if (over !== undefined) return ended("cancelled", "closing", over);
    const full = this.#full();
    if (full !== undefined)
      return notStarted(newRunId(), "overloaded", { code: "queue_full", message: full });
    return await this.#waits.guarded(() =>
      this.#begin({ code, label, limits: sent.asked }, options, normal.script),
    );
  }

  #full(): string | undefined {
    if (this.#unfinished.size >= unfinishedMost)
      return `${unfinishedMost} executions are not finished; answer or cancel those that wait (codemode.pending())`;
    const waiting = this.#forgetting?.full();
    if (waiting !== undefined) return waiting;
    const { activeMost } = this.#parts;
    return (this.#runner?.active ?? 0) >= activeMost
      ? `${activeMost} executions run or wait for a worker`
      : undefined;
  }

  async #begin(kept: Kept, options: ExecuteOptions, script: NormalScript): Promise<ExecuteResult> {
    const { idempotencyKey, signal } = options;
    let key = idempotencyKey;
    let made = await this.#made(kept, key);
    while (!made.created) {
      const before = await this.#store.run(made.runId);
      if (before === null) return refuse("request", removedUnderKey);
      if (before.state !== "finished" || (before.activations > 0 && this.#cells.begun(made.runId))) {
        if (before.versionHash !== made.versionHash) return refuse("request", otherScript);
        return await watched(this.#waits.result(made.runId, isOver), signal);
      }
      // Nothing of it ran: it is tried again, under a key that whoever else tries finds too.
      key = `${idempotencyKey}\n${before.runId}`;
      made = await this.#made(kept, key);
    }
    const { runId } = made;
    options.onRun?.(runId);
    this.#unfinished.add(runId);
    this.#cells.keep(runId, options.onLog, script);
    this.#opened().adopt(runId);
    return await this.#watched(runId, options);
  }

  async #made(kept: Kept, key: string | undefined): Promise<Made> {
    const run = newRun(this.#parts.name, kept, key);
    const result = await this.#store.commit({ operations: [{ kind: "createRun", run }] });
    const made = result.ok ? result.results[0] : undefined;
    if (made?.kind !== "run") throw new Error(result.ok ? "the store made no run" : result.message);
    return { created: made.created, runId: made.runId, versionHash: run.versionHash };
  }

  async #watched(runId: string, { signal, queueDeadlineMs }: ExecuteOptions): Promise<ExecuteResult> {
    let late = false;
    const cancel = (): void => void this.#runner?.cancel(runId, "caller", "caller");
    const timer =
      queueDeadlineMs === undefined
        ? undefined
        : setTimeout(() => {
            if (this.#cells.begun(runId)) return;
            late = true;
            cancel();
          }, queueDeadlineMs);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const result = await this.#waits.result(runId, isOver);
      if (!late || result.started) return result;
      const message = "no worker became free before queueDeadlineMs";
      return notStarted(runId, "overloaded", { code: "queue_timeout", message });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** What comes from outside for executions that are there. */
  get requests(): JournalRequests {
    return this.#requests;
  }

  // ------------------------------------------------------------------------------------------------------------- the engine

  #opened(): Runner {
    if (this.#runner !== undefined) return this.#runner;
    const built = readWorkerBuild(defaultBuildFolder());
    if (!built.ok) throw new Error(built.message);
    this.#runner = createRunner({
      store: this.#store,
      pool: this.#cells,
      hooks: {
        gate: (run) => this.#gate(run),
        finished: (run) => this.#finished(run),
        suspended: (run) => this.#suspended(run),
        storeFailed: (error) =>
          this.#waits.end(`the store failed: ${error instanceof Error ? error.message : ""}`),
        failed: (runId) => this.#waits.notify(runId),
      },
      fingerprint: built.build.fingerprint,
      owner: `codemode:${randomBytes(16).toString("hex")}`,
      // The pool's queue is the bound of what runs.
      activationsMost: 4096,
      // A timer is waited for as without a journal: within wallMs, with the worker.
      suspendAfterMs: limitCeilings.wallMs,
    });
    return this.#runner;
  }

  #finished(run: RunRow): void {
    this.#unfinished.delete(run.runId);
    this.#forgetting?.finished(run);
    this.#pruning?.finished();
    this.#waits.notify(run.runId);
  }

  #suspended(run: RunRow): void {
    this.#forgetting?.suspended(run);
    this.#unanswered.watch();
    this.#waits.notify(run.runId);
  }

  async #gate(run: RunRow): Promise<Gate> {
    const kept = keptOf(run);
    const sent = sentLimits(kept.limits, this.#parts.normalizer);
    const normal = await this.#normal(kept.code, kept.label, kept.limits);
    if (!normal.ok) {
      const { message } = normal.failure;
      return { ok: false, end: { status: "script_error", reason: "syntax", message } };
    }
    const { script } = normal;
    const runnable: Runnable = Object.freeze({
      flow: run.runId,
      hash: run.versionHash,
      manifest: manifest(),
      script: script.text,
      // The script is the input here, whatever was allowed for one.
      limits: { ...sent.limits, inputBytes: Math.max(sent.limits.inputBytes, keptBytes) },
      functions: this.#parts.functions,
      names: this.#names,
      kvMaxBytes: 0,
      mapError: errorMapper(() => script.map),
    });
    return { ok: true, runnable };
  }

  #limitsOf(asked: unknown): SentLimits | string {
    if (asked === undefined) return this.#sent;
    const parsed = parseLimits(asked, this.#parts.limits, this.#parts.ceilings);
    return parsed.ok ? sentLimits(parsed.limits, this.#parts.normalizer) : parsed.message;
  }

  async #normal(code: string, label: string | undefined, { sourceBytes }: Limits): Promise<NormalResult> {
    return await this.#parts.normalizer.normalize(code, {
      sourceBytes,
      ...(label === undefined ? {} : { label }),
    });
  }

  historyOf(runId: string): Promise<RunHistory | null> {
    return this.#store.history(runId);
  }

  async close(): Promise<void> {
    this.#waits.stop(closed);
    this.#unanswered.close();
    await this.#runner?.close();
    await this.#pruning?.close();
    this.#waits.end(closed);
  }
}
