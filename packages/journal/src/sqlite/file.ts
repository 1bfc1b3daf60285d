/**
 * The file of a store before SQLite opens it: made with its folder when absent, checked when present. Called by the store's
 * thread.
 *
 * The folder is the store's own, of mode 0700, and the file of mode 0600, both of the user who runs flowcell: whoever else
 * could write there could put another history in place, and the journal holds what scripts read. A store that is not so is
 * refused rather than mended, since somebody may have been there. The file itself is never a link: two names for one store
 * would have two write-ahead logs and two sockets beside them. Links on the way to the folder are followed once.
 *
 * Nothing here opens a file that is there: closing any descriptor of it would drop the lock that another store of this
 * process has on it (POSIX locks belong to the process).
 */

import {
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  rmSync,
  type Stats,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import process from "node:process";
import { StoreFailure, StoreUnreadable } from "../store.js";

const otherUsers = 0o077;

/** The absolute path of the file, its folder without links. Makes folder and file when they are absent. */
export function prepareFile(path: string): string {
  if (path.trim() !== path || path.includes("\0") || basename(path) === "")
    throw new StoreUnreadable(`"${path}" cannot name a store: it is empty or begins or ends with a blank`);
  try {
    const file = join(prepareFolder(dirname(resolve(path)), basename(path)), basename(path));
    if (absent(file)) create(file);
    check(lstatSync(file), file);
    return file;
  } catch (error) {
    if (error instanceof StoreUnreadable) throw error;
    throw new StoreFailure(`the store ${path} cannot be made or looked at: ${text(error)}`);
  }
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function absent(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) === undefined;
}

/** `name`: of the file, for the message about a folder that others use too. */
function prepareFolder(folder: string, name: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const real = realpathSync(folder);
  const stats = lstatSync(real);
  if (!stats.isDirectory()) throw new StoreUnreadable(`${real} is not a folder`);
  mustBeOurs(
    stats,
    real,
    `give the store a folder of its own, which is made when it is absent: ${join(real, "state", name)}; or look at what is in it, then chmod 700 ${real}`,
  );
  return real;
}

/** Under a name of its own first, so that nobody finds a file that is open here. */
function create(file: string): void {
  const draft = `${file}.new-${process.pid}-${process.hrtime.bigint()}`;
  closeSync(openSync(draft, "wx", 0o600));
  try {
    linkSync(draft, file);
  } catch (error) {
    // Another process made it first: then it is that process's, and SQLite says who holds it.
    if (absent(file)) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const folder = openSync(dirname(file), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function check(stats: Stats, file: string): void {
  if (stats.isSymbolicLink())
    throw new StoreUnreadable(
      `${file} is a link; name the file that it leads to, since a store has one name`,
    );
  if (!stats.isFile()) throw new StoreUnreadable(`${file} is not a file`);
  if (stats.nlink !== 1)
    throw new StoreUnreadable(
      `${file} has ${stats.nlink} names (hard links); remove the others, since a store has one`,
    );
  mustBeOurs(stats, file, `look at what is in it, then chmod 600 ${file}`);
}

function mustBeOurs(stats: Stats, path: string, remedy: string): void {
  const user = process.geteuid?.();
  if (user === undefined) return; // no users and modes of this kind here
  if (stats.uid !== user)
    throw new StoreUnreadable(
      `${path} belongs to user ${stats.uid}, not to ${user}; run flowcell as its owner`,
    );
  if ((stats.mode & otherUsers) !== 0)
    throw new StoreUnreadable(
      `${path} is open to other users (mode ${(stats.mode & 0o777).toString(8)}); ${remedy}`,
    );
}
