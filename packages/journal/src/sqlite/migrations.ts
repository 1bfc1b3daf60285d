/**
 * How a store of an older flowcell becomes one of this flowcell: a table of steps, each in one transaction with the number
 * it leads to. Called once, when the store's thread opens the file and holds its lock.
 *
 * Kept true: a step is never edited once released; a step never rewrites what a journal row of its format says.
 */

import { journalFormat } from "../recording.js";
import { StoreUnreadable } from "../store.js";
import type { Database } from "./driver.js";
import { applicationId, schemaVersion1 } from "./schema.js";

export interface Migration {
  /** The schema version that it leads to; the one before is what it starts from. */
  readonly to: number;
  readonly sql: string;
}

export const migrations: readonly Migration[] = Object.freeze([{ to: 1, sql: schemaVersion1 }]);

/** `path` is only for texts. Makes a new store of an empty file. */
export function migrate(db: Database, path: string, steps: readonly Migration[] = migrations): void {
  const known = steps.at(-1)?.to ?? 0;
  const present = presentVersion(db, path, known);
  for (const { to, sql } of steps) {
    if (to <= present) continue;
    const step = db.transaction(() => {
      db.exec(sql);
      db.prepare("UPDATE meta SET value = ? WHERE key = 'schema'").run(to);
      db.pragma(`application_id = ${applicationId}`);
    });
    step.immediate();
  }
}

function presentVersion(db: Database, path: string, known: number): number {
  const application = db.pragma("application_id", { simple: true });
  const objects = db.prepare<[], { n: number }>("SELECT count(*) AS n FROM sqlite_schema").get()?.n ?? 0;
  if (application === 0 && objects === 0) return 0;
  if (application !== applicationId)
    throw new StoreUnreadable(`${path} is an SQLite file of another program; name another file`);
  const meta = new Map(
    db
      .prepare<[], { key: string; value: number }>("SELECT key, value FROM meta")
      .all()
      .map(({ key, value }) => [key, value]),
  );
  const schema = meta.get("schema");
  const format = meta.get("journal_format");
  if (schema === undefined || format === undefined)
    throw new StoreUnreadable(`${path} does not say which schema it has; restore it from a backup`);
  if (schema > known || format > journalFormat) {
    throw new StoreUnreadable(
      `${path} has schema ${schema} and journal format ${format}; this flowcell knows schema ${known} and journal format ${journalFormat}: use the newer flowcell that wrote it, or another store`,
    );
  }
  return schema;
}
