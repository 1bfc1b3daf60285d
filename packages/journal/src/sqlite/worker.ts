/**
 * The work of the store's thread: takes requests in order, applies every unit that waits in one transaction, flushes once,
 * then answers. Called by `thread.ts`, which carries the messages.
 *
 * Kept true: nothing that was asked after a transaction began is answered before it is on disk; after an error of the disk
 * (or of this code) nothing is written or answered any more, and the flush that failed is never tried again.
 */

import { statSync } from "node:fs";
import type { StoreStats, UnitResult } from "../store.js";
import type { Database, Statement } from "./driver.js";
import { FlowReader } from "./flow-reader.js";
import type { Answer, Question, Request } from "./messages.js";
import { Retainer } from "./retention.js";
import { RunReader } from "./run-reader.js";
import { Units } from "./units.js";
import { Values } from "./values.js";

/** Four megabytes of log are copied into the file when nobody waits, sixteen whoever waits. */
const idleCheckpointPages = 1024;
const anyCheckpointPages = 4096;
const timesKept = 1000;

export class StoreWorker {
  readonly #db: Database;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #logPages: Statement<{ readonly log: number; readonly checkpointed: number }>;
  readonly #checkpoint: Statement<{ readonly busy: number }>;
  readonly #units: Units;
  readonly #runs: RunReader;
  readonly #flows: FlowReader;
  readonly #retainer: Retainer;
  readonly #flushMs: number[] = [];
  #unitCount = 0;
  #flushes = 0;

  constructor(db: Database) {
    const values = new Values(db);
    this.#db = db;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    // Tells the pages that lie in the log, and does nothing.
    this.#logPages = db.prepare("PRAGMA wal_checkpoint(NOOP)");
    this.#checkpoint = db.prepare("PRAGMA wal_checkpoint(PASSIVE)");
    this.#units = new Units(db, values);
    this.#runs = new RunReader(db, values);
    this.#flows = new FlowReader(db);
    this.#retainer = new Retainer(db);
  }

  /** Throws what the store cannot go on after. */
  work(requests: readonly Request[]): Answer[] {
    const writes = requests.some(({ question: { kind } }) => kind === "commit" || kind === "retain");
    if (!writes) return requests.map((request) => this.#answer(request));
    this.#begin.run();
    const answers = requests.map((request) => this.#answer(request));
    const started = performance.now();
    this.#commit.run();
    this.#flushes += 1;
    this.#flushMs[this.#flushes % timesKept] = performance.now() - started;
    return answers;
  }

  /** After the answers are on their way. */
  tidy(idle: boolean): void {
    const { log, checkpointed } = this.#logPages.get() ?? { log: 0, checkpointed: 0 };
    if (log - checkpointed >= (idle ? idleCheckpointPages : anyCheckpointPages)) this.#checkpoint.get();
  }

  close(): void {
    this.#db.close();
  }

  #answer({ id, question }: Request): Answer {
    return { id, value: this.#value(question) };
  }

  #value(question: Question): unknown {
    switch (question.kind) {
      case "commit":
        return this.#apply(question);
      case "retain":
        return this.#retainer.retain(question.retention);
      case "run":
        return this.#runs.run(question.key);
      case "history":
        return this.#runs.history(question.key);
      case "heads":
        return this.#runs.heads(question.key);
      case "outcome":
        return this.#runs.outcome(question.runId, question.position);
      case "logs":
        return this.#runs.logs(question.key);
      case "callById":
        return this.#runs.callById(question.key);
      case "runs":
        return this.#runs.runs(question.query);
      case "unfinished":
        return this.#runs.unfinished();
      case "waits":
        return this.#runs.waits();
      case "quarantined":
        return this.#runs.quarantined(question.runId);
      case "flow":
        return this.#flows.flow(question.key);
      case "flows":
        return this.#flows.flows();
      case "version":
        return this.#flows.version(question.flow, question.hash);
      case "versions":
        return this.#flows.versions(question.key);
      case "audit":
        return this.#flows.audit(question.limit);
      case "stats":
        return this.#stats();
      case "close":
        return null;
    }
  }

  #apply({ unit }: Extract<Question, { readonly kind: "commit" }>): UnitResult {
    this.#unitCount += 1;
    return this.#units.apply(unit);
  }

  #stats(): StoreStats {
    const pragma = (name: string): number => Number(this.#db.pragma(name, { simple: true }));
    const used = (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
    const log = statSync(`${this.#db.name}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    const times = this.#flushMs.filter((time) => time !== undefined).sort((one, other) => one - other);
    const quantile = (part: number): number => times[Math.floor((times.length - 1) * part)] ?? 0;
    return {
      bytes: used + log,
      units: this.#unitCount,
      flushes: this.#flushes,
      flushP50Ms: quantile(0.5),
      flushP99Ms: quantile(0.99),
      lastError: null,
    };
  }
}
