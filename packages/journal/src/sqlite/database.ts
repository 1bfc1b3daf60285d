/**
 * Opens the database of a store: its lock, its settings, its schema. Called by the store's thread.
 *
 * The lock is SQLite's own exclusive lock on the file, held from the first access until the connection or the process
 * ends, however it ends. Nobody else in this process may open the file meanwhile, not even to read it: closing it would
 * drop the lock.
 */

import { setTimeout as delay } from "node:timers/promises";
import { StoreFailure, StoreHeld, StoreUnreadable } from "../store.js";
import { type Database, loadDriver, sqliteCode } from "./driver.js";
import { prepareFile } from "./file.js";
import { migrate } from "./migrations.js";

export interface DatabaseOptions {
  readonly path: string;
  readonly durability: "full" | "normal";
  /** How long to wait for another process to let go. */
  readonly heldMs: number;
}

/** Two that open at the same instant can each be in the other's way; one of them gets through soon after. */
const collisionMs = 100;
const pauseMs = 20;
/** What one huge unit made of the log does not stay for ever. */
const logBytesKept = 64 * 1024 * 1024;

export async function openDatabase({ path, durability, heldMs }: DatabaseOptions): Promise<Database> {
  const Driver = loadDriver();
  const file = prepareFile(path);
  const until = performance.now() + Math.max(heldMs, collisionMs);
  for (;;) {
    const db = new Driver(file, { fileMustExist: true, timeout: 0 });
    try {
      settle(db, durability);
      migrate(db, file);
      return db;
    } catch (error) {
      db.close();
      const failure = explain(error, file);
      if (!(failure instanceof StoreHeld) || performance.now() >= until) throw failure;
    }
    await delay(pauseMs * (1 + Math.random()));
  }
}

function settle(db: Database, durability: "full" | "normal"): void {
  // Before the first access, so that the log's index lies in this process's memory and the lock is never let go.
  db.pragma("locking_mode = EXCLUSIVE");
  db.pragma("trusted_schema = OFF");
  db.pragma("temp_store = MEMORY");
  db.pragma("foreign_keys = ON");
  db.pragma("cell_size_check = ON");
  const mode = db.pragma("journal_mode = WAL", { simple: true });
  if (mode !== "wal") throw new StoreFailure(`SQLite uses journal mode ${mode} where WAL was asked for`);
  db.pragma(`synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
  // On macOS only these reach the disk itself.
  db.pragma("fullfsync = ON");
  db.pragma("checkpoint_fullfsync = ON");
  // SQLite hides the errors of its own checkpoints; the thread makes them.
  db.pragma("wal_autocheckpoint = 0");
  db.pragma(`journal_size_limit = ${logBytesKept}`);
}

function explain(error: unknown, file: string): unknown {
  const code = sqliteCode(error);
  if (code === null || !(error instanceof Error)) return error;
  switch (code) {
    case "SQLITE_BUSY":
    case "SQLITE_LOCKED":
    case "SQLITE_BUSY_RECOVERY":
    case "SQLITE_BUSY_SNAPSHOT":
      return new StoreHeld(
        `the store ${file} is held by another process; ask that process, or stop it and try again`,
      );
    case "SQLITE_NOTADB":
      return new StoreUnreadable(`${file} is not a store of flowcell; name another file`);
    default:
      if (code.startsWith("SQLITE_CORRUPT"))
        return new StoreUnreadable(`${file} is damaged (${error.message}); restore it from a backup`);
      return new StoreFailure(`the store ${file} cannot be opened: ${error.message} (${code})`);
  }
}
