// What this host offers to a confined worker, and what this process itself runs under. Called by sandbox's probe and by
// doctor. Asks the kernel by calls that change nothing; interprets nothing.

import { readFileSync } from "node:fs";
import { arch, release } from "node:os";
import { errnoName } from "./launch-error.js";
import { HOST, launcherLibrary } from "./library.js";

/** A yes or no, or the errno name with which the question itself was refused ("EPERM" under a foreign filter). */
export type Answer = boolean | string;

/** Bytes or a count; null: no limit. */
export type HardLimit = number | null;

export interface HostFacts {
  readonly os: "linux";
  /** Node's name: "x64", "arm64". */
  readonly arch: string;
  readonly kernelRelease: string;
  /** Landlock ABI, 0 if absent. */
  readonly landlockAbi: number;
  /** Why it is absent: "ENOSYS" not built in, "EOPNOTSUPP" off at boot, anything else: refused to this process. */
  readonly landlockError: string | null;
  readonly seccompFilter: Answer;
  readonly seccompTsync: Answer;
  readonly seccompKillProcess: Answer;
  /** Memory-deny-write-execute, kernel 6.3. */
  readonly mdwe: Answer;
  /** close_range with CLOSE_RANGE_CLOEXEC, kernel 5.11; without it the launcher walks /proc/self/fd. */
  readonly closeRangeCloexec: Answer;
  /** Whether /proc is a procfs. */
  readonly procfs: Answer;
  readonly pageBytes: number;
  /** kernel.yama.ptrace_scope, null where Yama is absent. */
  readonly yamaPtraceScope: number | null;
  /** fs.pipe-user-pages-soft, null if unreadable: beyond it, new pipes of an ordinary user shrink to two pages. */
  readonly pipeUserPagesSoft: number | null;
  /** This process. */
  readonly self: {
    readonly uid: number;
    readonly gid: number;
    /** CapEff of /proc/self/status as 16 hex digits, null if unreadable. */
    readonly capEffective: string | null;
    readonly seccompMode: number | string;
    readonly noNewPrivs: Answer;
    readonly dumpable: number | string;
    readonly personality: number | string;
    readonly hardLimits: {
      readonly dataBytes: HardLimit;
      readonly cpuSeconds: HardLimit;
      readonly stackBytes: HardLimit;
      readonly openFiles: HardLimit;
    };
  };
}

/** `launcherPath` as in LaunchRequest. */
export function hostFacts(launcherPath?: string): HostFacts {
  const out = new BigInt64Array(HOST.length);
  launcherLibrary(launcherPath).hostFacts(out);
  const word = (index: number): number => Number(out[index] ?? -1n);
  const answer = (index: number): Answer => (word(index) < 0 ? errnoName(-word(index)) : word(index) === 1);
  const value = (index: number): number | string => (word(index) < 0 ? errnoName(-word(index)) : word(index));
  const limit = (index: number): HardLimit => {
    const bytes = BigInt.asUintN(64, out[index] ?? 0n);
    return bytes > BigInt(Number.MAX_SAFE_INTEGER) ? null : Number(bytes);
  };
  const landlock = word(HOST.landlockAbi);
  return {
    os: "linux",
    arch: arch(),
    kernelRelease: release(),
    landlockAbi: Math.max(landlock, 0),
    landlockError: landlock < 0 ? errnoName(-landlock) : null,
    seccompFilter: answer(HOST.seccompFilter),
    seccompTsync: answer(HOST.seccompTsync),
    seccompKillProcess: answer(HOST.seccompKillProcess),
    mdwe: answer(HOST.mdwe),
    closeRangeCloexec: answer(HOST.closeRangeCloexec),
    procfs: answer(HOST.procfs),
    pageBytes: word(HOST.pageBytes),
    yamaPtraceScope: readNumber("/proc/sys/kernel/yama/ptrace_scope"),
    pipeUserPagesSoft: readNumber("/proc/sys/fs/pipe-user-pages-soft"),
    self: {
      uid: process.geteuid?.() ?? -1,
      gid: process.getegid?.() ?? -1,
      capEffective: /^CapEff:\s*([0-9a-f]{16})$/m.exec(readText("/proc/self/status") ?? "")?.[1] ?? null,
      seccompMode: value(HOST.ownSeccompMode),
      noNewPrivs: answer(HOST.ownNoNewPrivs),
      dumpable: value(HOST.ownDumpable),
      personality: value(HOST.ownPersonality),
      hardLimits: {
        dataBytes: limit(HOST.hardDataBytes),
        cpuSeconds: limit(HOST.hardCpuSeconds),
        stackBytes: limit(HOST.hardStackBytes),
        openFiles: limit(HOST.hardNofile),
      },
    },
  };
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function readNumber(path: string): number | null {
  const text = readText(path)?.trim();
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
