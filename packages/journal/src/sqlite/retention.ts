/**
 * Removes finished runs that retention lets go, oldest first, with everything that belongs to them; the schema's triggers
 * take the rest of each run and the bodies that nobody else holds. Deduplication keys, events and audit stay.
 */

import { type RunSize, runsToRemove } from "../paging.js";
import type { Retention } from "../store.js";
import type { Database, Statement } from "./driver.js";

interface OldRun extends RunSize {
  readonly seq: number;
}

const columns = `seq,
  coalesce((SELECT max(ord) + 1 FROM deliveries WHERE run = runs.seq), 0) AS deliveries,
  coalesce((SELECT max(seq) + 1 FROM log_lines WHERE run = runs.seq), 0) AS lines`;

export class Retainer {
  readonly #old: Statement<OldRun>;
  readonly #oldOfFlow: Statement<OldRun>;
  readonly #remove: Statement;
  readonly #orphans: Statement;

  constructor(db: Database) {
    this.#old = db.prepare(
      `SELECT ${columns} FROM runs WHERE state = 'finished' AND finished_at < ? ORDER BY finished_at, seq LIMIT ?`,
    );
    this.#oldOfFlow = db.prepare(
      `SELECT ${columns} FROM runs WHERE state = 'finished' AND flow = ? AND finished_at < ? ORDER BY finished_at, seq LIMIT ?`,
    );
    this.#remove = db.prepare("DELETE FROM runs WHERE seq = ?");
    // Of runs that were never there, or were gone when something late came for them.
    this.#orphans = db.prepare(
      "DELETE FROM quarantine WHERE at < ? AND NOT EXISTS (SELECT 1 FROM runs WHERE id = quarantine.run_id)",
    );
  }

  /** How many runs were removed. */
  retain({ finishedBefore, runsMax, flow }: Retention): number {
    const rows =
      flow === undefined
        ? this.#old.all(finishedBefore, runsMax)
        : this.#oldOfFlow.all(flow, finishedBefore, runsMax);
    const removed = rows.slice(0, runsToRemove(rows));
    for (const { seq } of removed) this.#remove.run(seq);
    // Nobody's runs are no flow's.
    if (flow === undefined) this.#orphans.run(finishedBefore);
    return removed.length;
  }
}
