// The koffi binding to the launcher library (worker-native/src/launch/launch.h): loads it once, on first use, and
// gives its functions types. Called by launch.ts and host-facts.ts only.
//
// koffi and the library cost about 10 ms, so importing this package loads neither. All calls are synchronous: a koffi
// `.async` call runs on one of libuv's four threads, whose end would kill the worker it launched, and which file reads
// of the whole process wait for.
//
// Structures cross as flat typed arrays in the order of launch.h, 32-bit and 64-bit members in arrays of their own kind.

import { createRequire } from "node:module";
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
  launchWorker(
    path: string,
    args: readonly string[],
    count: number,
    limits: BigUint64Array,
    result: Int32Array,
  ): number;
  stepName(step: number): string | null;
  kill(pidfd: number): number;
  reap(pidfd: number, out: BigInt64Array): number;
  cpuNs(pid: number, pidfd: number): number | bigint;
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
  loaded = { path: file, library: bind(file) };
  return loaded.library;
}

function bind(path: string): LauncherLibrary {
  const require = createRequire(import.meta.url);
  // `require` is untyped; koffi's own declarations describe what it returns.
  const koffi = require("koffi") as typeof import("koffi");
  const library = koffi.load(path);
  return {
    launchWorker: library.func(
      "int32_t launch_worker(const char *path, const char **arguments, uint32_t count, uint64_t *limits, int32_t *result)",
    ),
    stepName: library.func("const char *launch_step_name(int32_t step)"),
    kill: library.func("int32_t launch_kill(int32_t pidfd)"),
    reap: library.func("int32_t launch_reap(int32_t pidfd, int64_t *out)"),
    cpuNs: library.func("int64_t launch_cpu_ns(int32_t pid, int32_t pidfd)"),
    hostFacts: library.func("void launch_host_facts(int64_t *out)"),
  };
}
