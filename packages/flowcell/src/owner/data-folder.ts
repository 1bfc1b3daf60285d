/**
 * The data folder: where the store, the owner's socket and the settings of one flowcell stand. Every command that touches
 * flows comes through here first.
 *
 * Kept true: the folder is a real folder of this user that nobody else may enter. That is what keeps the socket the
 * owner's own: whoever can reach it may do everything.
 */

import { mkdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { ConfigurationError } from "./failures.js";

export interface DataFolder {
  /** Absolute, links followed. */
  readonly path: string;
  readonly storeFile: string;
  readonly socketFile: string;
  readonly settingsFile: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** `--data`, then FLOWCELL_DATA, then the system's place for state. */
export function dataFolderPath(
  option: string | undefined,
  environment: Environment,
  uid: number | undefined = process.getuid?.(),
): string {
  if (option === "") throw new ConfigurationError("--data needs the path of a folder");
  const named = option ?? filled(environment["FLOWCELL_DATA"]);
  if (named !== undefined) return resolve(named);
  if (uid === 0) return "/var/lib/flowcell";
  const state = filled(environment["XDG_STATE_HOME"]);
  // The specification of these variables has relative paths ignored.
  if (state !== undefined && isAbsolute(state)) return join(state, "flowcell");
  return join(filled(environment["HOME"]) ?? homedir(), ".local/state/flowcell");
}

function filled(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}

/**
 * Opens the folder. `create` makes it when it is not there; without it that is a mistake to report, since a mistyped
 * `--data` would otherwise show an empty store.
 */
export function openDataFolder(path: string, create: boolean): DataFolder {
  if (create) make(path);
  const { real, status } = look(path);
  if (!status.isDirectory()) throw new ConfigurationError(`data folder ${path}: is no folder`);
  const uid = process.getuid?.();
  if (uid !== undefined && status.uid !== uid) {
    throw new ConfigurationError(
      `data folder ${path}: belongs to user ${status.uid}, this is user ${uid}; run flowcell as that user, or name another folder with --data`,
    );
  }
  if ((status.mode & 0o077) !== 0) {
    const mode = (status.mode & 0o777).toString(8).padStart(4, "0");
    throw new ConfigurationError(
      `data folder ${path}: others may enter it (mode ${mode}); nobody but its owner may: chmod 700 ${path}`,
    );
  }
  return {
    path: real,
    storeFile: join(real, "flows.db"),
    socketFile: join(real, "owner.sock"),
    settingsFile: join(real, "settings.json"),
  };
}

function make(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new ConfigurationError(`data folder ${path}: cannot be made (${errorCode(error)})`);
  }
}

function look(path: string): { readonly real: string; readonly status: Stats } {
  try {
    const real = realpathSync(path);
    return { real, status: statSync(real) };
  } catch (error) {
    const code = errorCode(error);
    if (code !== "ENOENT") throw new ConfigurationError(`data folder ${path}: cannot be opened (${code})`);
    throw new ConfigurationError(
      `there is no data folder ${path}; flowcell install makes it, --data or FLOWCELL_DATA names another`,
    );
  }
}

export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
