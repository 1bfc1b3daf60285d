/**
 * A store in an SQLite file: this side queues requests and settles promises, `thread.ts` does the work. Units that are
 * committed in one turn of the event loop travel in one message, and the thread joins whatever waits for it, so that many
 * share one flush.
 *
 * The queue needs no bound of its own: whoever asks waits for the answer, and the engine bounds how many ask. Kept true:
 * once the thread has reported a failure or is gone, everything that waits and everything that comes is rejected with
 * StoreFailure; the thread keeps the process alive only while something waits for it.
 */

import { Worker } from "node:worker_threads";
import type { CallOutcome } from "@flowcell/protocol";
import { auditLimit, checkedRetention, pageLimit } from "../paging.js";
import { Refused } from "../rules.js";
import {
  type AuditRow,
  type CallRow,
  type FlowRow,
  type LogRow,
  type OpenWait,
  type QuarantineRow,
  type Retention,
  type RunHeads,
  type RunHistory,
  type RunQuery,
  type RunRow,
  type Store,
  StoreFailure,
  StoreHeld,
  type StoreStats,
  StoreUnreadable,
  type Unit,
  type UnitResult,
  type VersionRow,
} from "../store.js";
import { takeUnit } from "../units.js";
import type { Question, Reply, Request, ThreadData } from "./messages.js";
import { threadFile } from "./thread-file.js";

export interface SqliteStoreOptions {
  /** The file; it and its folder are made when absent, for this user alone. */
  readonly path: string;
  /**
   * `full` (default): an acknowledged unit survives the end of the machine. `normal`: of the process, and a crash of the
   * machine may take the last units but never parts of one.
   */
  readonly durability?: "full" | "normal";
  /** How long to wait for another process that holds the store; 0 by default. */
  readonly heldMs?: number;
  /** The file of the store's thread, where it is not beside this module. */
  readonly threadPath?: string;
}

const optionNames = ["path", "durability", "heldMs", "threadPath"];

/** Rejects with StoreHeld, StoreUnreadable or StoreFailure. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, durability = "full", heldMs = 0, threadPath } = options;
  for (const name of Object.keys(options)) {
    if (!optionNames.includes(name))
      throw new TypeError(`openSqliteStore: unknown option ${name}; there are ${optionNames.join(", ")}`);
  }
  if (durability !== "full" && durability !== "normal")
    throw new TypeError(`openSqliteStore: durability is "full" or "normal", not ${String(durability)}`);
  if (!(heldMs >= 0 && heldMs <= 600_000))
    throw new RangeError(`openSqliteStore: heldMs is 0 to 600000, not ${heldMs}`);
  const store = new SqliteStore({ path, durability, heldMs }, threadPath ?? threadFile());
  await store.opened;
  return store;
}

interface Waiter {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

const refusals = { StoreFailure, StoreHeld, StoreUnreadable };

class SqliteStore implements Store {
  readonly opened: Promise<void>;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  readonly #waiting = new Map<number, Waiter>();
  #outbox: Request[] = [];
  #transfer: ArrayBuffer[] = [];
  #nextId = 0;
  #failure: Error | null = null;
  #closed: Promise<void> | null = null;

  constructor(data: ThreadData, threadPath: string) {
    this.#worker = new Worker(threadPath, {
      workerData: data,
      name: "flowcell-store",
      // The thread needs nothing of the process's environment and flags.
      env: {},
      execArgv: [],
    });
    this.#exited = new Promise((resolve) => this.#worker.once("exit", () => resolve()));
    this.opened = new Promise((resolve, reject) => {
      this.#worker.on("message", (reply: Reply) => {
        switch (reply.kind) {
          case "open":
            this.#worker.unref();
            resolve();
            break;
          case "refused":
            reject(new refusals[reply.error](reply.message));
            this.#fail(new StoreFailure(reply.message));
            break;
          case "answers":
            for (const { id, value } of reply.answers) this.#settle(id, value);
            if (this.#waiting.size === 0) this.#worker.unref();
            break;
          case "failed":
            this.#fail(new StoreFailure(`the store has failed: ${reply.message}`));
            break;
        }
      });
      this.#worker.on("error", (error) => {
        const failure = new StoreFailure(`the store's thread ended: ${error.message}`, { cause: error });
        reject(failure);
        this.#fail(failure);
      });
      this.#worker.on("exit", () => {
        const failure = new StoreFailure("the store's thread has ended");
        reject(failure);
        this.#fail(failure);
      });
    });
  }

  async commit(unit: Unit): Promise<UnitResult> {
    this.#mustBeUsable();
    let taken: Unit;
    try {
      taken = takeUnit(unit);
    } catch (error) {
      if (error instanceof Refused) return error.result();
      throw error;
    }
    collectBuffers(taken, this.#transfer);
    return this.#ask<UnitResult>({ kind: "commit", unit: taken });
  }

  async run(runId: string): Promise<RunRow | null> {
    return this.#ask<RunRow | null>({ kind: "run", key: runId });
  }

  async history(runId: string): Promise<RunHistory | null> {
    return this.#ask<RunHistory | null>({ kind: "history", key: runId });
  }

  async heads(runId: string): Promise<RunHeads | null> {
    return this.#ask<RunHeads | null>({ kind: "heads", key: runId });
  }

  async outcome(runId: string, position: number): Promise<CallOutcome | null> {
    return this.#ask<CallOutcome | null>({ kind: "outcome", runId, position });
  }

  async logs(runId: string): Promise<readonly LogRow[]> {
    return this.#ask<LogRow[]>({ kind: "logs", key: runId });
  }

  async runs(query: RunQuery): Promise<readonly RunRow[]> {
    return this.#ask<RunRow[]>({ kind: "runs", query: { ...query, limit: pageLimit(query.limit) } });
  }

  async unfinished(): Promise<readonly RunRow[]> {
    return this.#ask<RunRow[]>({ kind: "unfinished" });
  }

  async waits(): Promise<readonly OpenWait[]> {
    return this.#ask<OpenWait[]>({ kind: "waits" });
  }

  async callById(callId: string): Promise<{ readonly runId: string; readonly call: CallRow } | null> {
    return this.#ask({ kind: "callById", key: callId });
  }

  async flow(flow: string): Promise<FlowRow | null> {
    return this.#ask<FlowRow | null>({ kind: "flow", key: flow });
  }

  async flows(): Promise<readonly FlowRow[]> {
    return this.#ask<FlowRow[]>({ kind: "flows" });
  }

  async version(flow: string, hash: string): Promise<VersionRow | null> {
    return this.#ask<VersionRow | null>({ kind: "version", flow, hash });
  }

  async versions(flow: string): Promise<readonly Omit<VersionRow, "bundle" | "bundleMap" | "sources">[]> {
    return this.#ask({ kind: "versions", key: flow });
  }

  async quarantined(runId: string | null): Promise<readonly QuarantineRow[]> {
    return this.#ask<QuarantineRow[]>({ kind: "quarantined", runId });
  }

  async audit(limit: number): Promise<readonly AuditRow[]> {
    return this.#ask<AuditRow[]>({ kind: "audit", limit: auditLimit(limit) });
  }

  async retain(retention: Retention): Promise<number> {
    return this.#ask<number>({ kind: "retain", retention: checkedRetention(retention) });
  }

  async stats(): Promise<StoreStats> {
    return this.#ask<StoreStats>({ kind: "stats" });
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    if (this.#failure === null) {
      try {
        await this.#send({ kind: "close" });
      } catch {
        // Whoever waited for something has been told; what is left is to let go of the file.
      }
    }
    this.#worker.ref();
    if (this.#failure !== null) await this.#worker.terminate();
    await this.#exited;
  }

  #mustBeUsable(): void {
    if (this.#closed !== null) throw new StoreFailure("the store is closed");
    if (this.#failure !== null) throw this.#failure;
  }

  #ask<T>(question: Question): Promise<T> {
    this.#mustBeUsable();
    return this.#send(question);
  }

  #send<T>(question: Question): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const id = this.#nextId;
      this.#nextId += 1;
      if (this.#waiting.size === 0) this.#worker.ref();
      this.#waiting.set(id, { resolve, reject });
      this.#outbox.push({ id, question });
      if (this.#outbox.length === 1) queueMicrotask(() => this.#post());
    });
  }

  #post(): void {
    const requests = this.#outbox;
    const transfer = this.#transfer;
    this.#outbox = [];
    this.#transfer = [];
    if (this.#failure === null) this.#worker.postMessage(requests, transfer);
  }

  #settle(id: number, value: unknown): void {
    const waiter = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiter?.resolve(value as never); // the thread answers each question with what its method promises
  }

  /** The first failure stays; whoever waits is told now, whoever comes later is told the same. */
  #fail(failure: Error): void {
    this.#failure ??= failure;
    const waiters = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiters) reject(this.#failure);
    this.#worker.unref();
  }
}

/** The bytes of attachments, which takeUnit copied for this store alone, so that they travel without another copy. */
function collectBuffers(value: unknown, into: ArrayBuffer[]): void {
  if (typeof value !== "object" || value === null) return;
  if (value instanceof Uint8Array) {
    if (value.buffer instanceof ArrayBuffer) into.push(value.buffer);
    return;
  }
  for (const part of Object.values(value)) collectBuffers(part, into);
}
