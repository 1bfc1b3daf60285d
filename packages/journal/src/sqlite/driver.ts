/**
 * Loads SQLite. Called by the store's thread, so that nothing of it is loaded before a store is opened.
 *
 * Node 22 and later take better-sqlite3 13, which brings its binary; on Node 20 the clone has compiled the last release
 * that runs there. Both are the same driver with the same functions.
 */

import { createRequire } from "node:module";
import process from "node:process";
import type Sqlite from "better-sqlite3";
import { StoreFailure } from "../store.js";

export type Database = Sqlite.Database;
export type Statement<Row = unknown> = Sqlite.Statement<unknown[], Row>;

type Constructor = new (path: string, options: Sqlite.Options) => Database;

const major = Number(process.versions.node.split(".")[0]);
const driverName = major < 22 ? "better-sqlite3-node20" : "better-sqlite3";

export function loadDriver(): Constructor {
  const require = createRequire(import.meta.url);
  try {
    return require(driverName) as Constructor; // the module's one export
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n")[0] : String(error);
    throw new StoreFailure(
      `SQLite cannot be loaded (${driverName}: ${reason}); flows need it: install python3, make and g++ where Node is older than 22, then run npm run build again`,
    );
  }
}

/** The code of an error of SQLite itself, for example SQLITE_FULL; null for any other. */
export function sqliteCode(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  const { code } = error;
  return typeof code === "string" && code.startsWith("SQLITE_") ? code : null;
}
