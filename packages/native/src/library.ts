// The launcher library (worker-native/src/launch) as Node loads it: once, on first use. Called by launch.ts, host-facts.ts
// and files-library.ts only. The library is a module of Node-API by itself, so nothing stands between it and JavaScript; it
// checks the types of what it is given.
//
// Importing this package loads nothing. All calls are synchronous: on one of libuv's four threads a launch would be undone
// by the end of that thread, which would kill the worker, and file reads of the whole process would wait for it.
//
// Structures cross as flat typed arrays in the order of launch.h, 32-bit and 64-bit members in arrays of their own kind.

import { nativePaths, requireNative } from "./paths.js";

/** Indexes into `struct launch_result`. */
export const RESULT = {
  step: 0,
  error: 1,
  pid: 2,
  pidfd: 3,
  stdin: 4,
  stdout: 5,
  stderr: 6,
  length: 7,
} as const;

/** Indexes into `struct launch_exit`, seen as 64-bit words: the first holds code (low half) and signal (high half). */
export const EXIT = { codeAndSignal: 0, userUs: 1, systemUs: 2, length: 3 } as const;

/** Indexes into `struct launch_limits`. */
export const LIMITS = { dataBytes: 0, cpuSeconds: 1, stackBytes: 2, length: 3 } as const;

/** Indexes into `struct host_facts`. */
export const HOST = {
  landlockAbi: 0,
  seccompFilter: 1,
  seccompTsync: 2,
  seccompKillProcess: 3,
  mdwe: 4,
  closeRangeCloexec: 5,
  ownSeccompMode: 6,
  ownNoNewPrivs: 7,
  ownDumpable: 8,
  ownPersonality: 9,
  pageBytes: 10,
  procfs: 11,
  hardDataBytes: 12,
  hardCpuSeconds: 13,
  hardStackBytes: 14,
  hardNofile: 15,
  length: 16,
} as const;

/** The functions of launch.h. Numbers that fail are negative errno values, except launchWorker's step. */
export interface LauncherLibrary {
  launchWorker(path: string, args: readonly string[], limits: BigUint64Array, result: Int32Array): number;
  stepName(step: number): string | null;
  kill(pidfd: number): number;
  reap(pidfd: number, out: BigInt64Array): number;
  cpuNs(pid: number, pidfd: number): number;
  hostFacts(out: BigInt64Array): void;
}

let loaded: { path: string; library: LauncherLibrary } | undefined;

/** The library at `path` (default: that of this clone), loaded once. A second path in one process is refused. */
export function launcherLibrary(path?: string): LauncherLibrary {
  if (loaded !== undefined) {
    if (path !== undefined && path !== loaded.path) {
      throw new Error(`flowcell: the launcher library is already loaded from ${loaded.path}`);
    }
    return loaded.library;
  }
  const file = requireNative(path ?? nativePaths().launcher);
  loaded = { path: file, library: loadLauncher(file, launcherNames) };
  return loaded.library;
}

const launcherNames = ["launchWorker", "stepName", "kill", "reap", "cpuNs", "hostFacts"] as const;

/** What the library at `path` exports, seen as the functions of these names; refused where one is missing. */
export function loadLauncher<Library extends object>(
  path: string,
  names: readonly (keyof Library & string)[],
): Library {
  const module: { readonly exports: Readonly<Record<string, unknown>> } = { exports: {} };
  process.dlopen(module, path);
  const missing = names.filter((name) => typeof module.exports[name] !== "function");
  if (missing.length > 0) {
    throw new Error(
      `flowcell: ${path} has no ${missing.join(", ")}: it is of another build; run \`npm run build\``,
    );
  }
  // The functions are there; their types are those that the files beside the library's header declare.
  return module.exports as Library;
}
