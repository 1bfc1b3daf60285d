// probe(): what this host can enforce, before any policy is looked at.
//
// Called by the compiler's callers and by doctor. Answers come from the kernel itself: system calls asked through the
// launcher library (packages/native) and texts of /proc about this very process.
// Trust: this host's kernel, and /proc only after it was seen to be a genuine procfs. A mount that covers or hides
// /proc would make the observation of workers blind, so it makes the backend unavailable.
// Kept true: nothing is reported as enforced that was not asked for. Whatever could not be asked counts as missing.
import { release } from "node:os";
import { hostFacts, type HostFacts as NativeHostFacts } from "@flowcell/native";
import type { Blocker, BlockerCode } from "./blocker.js";
import { CONTROLS, type Control } from "./controls.js";
import { type ControlStatus, linuxControls } from "./linux-controls.js";
import type { IsolationLevel } from "./policy.js";
import { errorCode, hostProc, type ProcReader } from "./proc-reader.js";
import { type IdQuadruple, type ProcStatus, ProcTextError, parseStatus } from "./proc-text.js";

/** The identity that a root parent's workers take. */
export const NOBODY = 65_534;

/** The only backend there is so far. */
export const LINUX_BACKEND = "linux-seccomp";

/** What the kernel answers when it is asked by system calls. Missing answers are false, 0 or a reason. */
export interface KernelFacts {
  /** 0 when Landlock cannot be used; `landlockProblem` then says why. */
  readonly landlockAbi: number;
  readonly landlockProblem: string;
  /** The kernel may have Landlock, but something around this process refuses it. No policy makes that acceptable. */
  readonly landlockRefused: boolean;
  readonly seccompFilter: boolean;
  readonly seccompThreadSync: boolean;
  readonly seccompKillProcess: boolean;
  readonly memoryDenyWriteExecute: boolean;
  readonly closeRange: boolean;
  /** Hard limits of this process; -1 is unlimited. Workers cannot have more. */
  readonly hardDataBytes: number;
  readonly hardCpuSeconds: number;
  readonly hardStackBytes: number;
}

/** Facts about this host and this process that a plan is made from. */
export interface HostFacts {
  readonly os: "linux" | "macos" | "windows" | "other";
  readonly arch: string;
  readonly kernelRelease: string;
  /** Changes with every boot; empty where it is not known. */
  readonly bootId: string;
  readonly kernel: KernelFacts;
  /** Yama's ptrace scope, or null without Yama. */
  readonly yamaPtraceScope: number | null;
  /** Seccomp actions the kernel lists. */
  readonly seccompActions: readonly string[];
  /** This process, the parent of all workers. */
  readonly self: {
    readonly pid: number;
    readonly uid: IdQuadruple;
    readonly gid: IdQuadruple;
    readonly groups: readonly number[];
    /** Seccomp filters that workers inherit from this process. */
    readonly seccompFilters: number;
    /** Whether this process may read the memory map of a process that is not dumpable. */
    readonly canTrace: boolean;
    readonly canChangeIdentity: boolean;
    readonly storeBypass: string | undefined;
    readonly indirectBranch: string | undefined;
  } | null;
}

/** What this host can enforce, at most. A policy may still ask for more than that. */
export interface HostCapabilities {
  readonly backend: string;
  readonly available: boolean;
  /** Why the backend is not available. */
  readonly blockers: readonly Blocker[];
  /** The strongest isolation of the backend. */
  readonly isolation: IsolationLevel;
  /** Every control, in the order of `CONTROLS`. */
  readonly controls: readonly ControlStatus[];
  readonly facts: HostFacts;
}

/** Where the probe gets its answers; tests give their own. */
export interface ProbeSources {
  readonly platform: string;
  readonly arch: string;
  readonly kernelRelease: string;
  readonly pid: number;
  readonly proc: ProcReader;
  readonly kernel: () => KernelFacts;
}

const CAP_SETGID = 1n << 6n;
const CAP_SETUID = 1n << 7n;
const CAP_SYS_PTRACE = 1n << 19n;

const TEXT_MAX = 64 * 1024;
const MOUNTS_TEXT_MAX = 4 * 1024 * 1024;

/** This machine and this process. `launcherPath` as in packages/native. */
export function hostSources(launcherPath?: string): ProbeSources {
  return {
    platform: process.platform,
    arch: process.arch,
    kernelRelease: release(),
    pid: process.pid,
    proc: hostProc,
    kernel: () => readKernelFacts(hostFacts(launcherPath)),
  };
}

/** Asks this host what it can enforce. Changes nothing; some milliseconds at the first call of a process. */
export function probe(sources: ProbeSources = hostSources()): HostCapabilities {
  if (sources.platform !== "linux") return unavailable(sources);
  const blockers: Blocker[] = [];
  const kernel = askThrough(sources, blockers);
  const self = readSelf(sources, blockers);
  const facts: HostFacts = {
    os: "linux",
    arch: sources.arch,
    kernelRelease: sources.kernelRelease,
    bootId: line(sources.proc, "/proc/sys/kernel/random/boot_id") ?? "",
    kernel,
    yamaPtraceScope: numberLine(sources.proc, "/proc/sys/kernel/yama/ptrace_scope"),
    seccompActions: (line(sources.proc, "/proc/sys/kernel/seccomp/actions_avail") ?? "")
      .split(" ")
      .filter(Boolean),
    self,
  };
  if (kernel !== NO_KERNEL_FACTS) blockers.push(...kernelBlockers(facts));
  blockers.push(...identityBlockers(facts, sources.proc));
  return {
    backend: LINUX_BACKEND,
    available: blockers.length === 0,
    blockers,
    isolation: "process",
    controls:
      blockers.length === 0
        ? linuxControls({
            landlockAbi: kernel.landlockAbi,
            memoryDenyWriteExecute: kernel.memoryDenyWriteExecute,
            root: self !== null && isRoot(self),
          })
        : noControls("the backend is not available"),
    facts,
  };
}

/** What the answers of packages/native amount to. An answer that is no plain yes counts as no. */
export function readKernelFacts(facts: NativeHostFacts): KernelFacts {
  const { hardLimits } = facts.self;
  return {
    landlockAbi: facts.landlockAbi,
    landlockProblem: facts.landlockError === null ? "" : landlockProblem(facts.landlockError),
    landlockRefused: facts.landlockError !== null && !LANDLOCK_ABSENT.includes(facts.landlockError),
    seccompFilter: facts.seccompFilter === true,
    seccompThreadSync: facts.seccompTsync === true,
    seccompKillProcess: facts.seccompKillProcess === true,
    memoryDenyWriteExecute: facts.mdwe === true,
    // The question is asked with a flag that came one kernel later: EINVAL means that the call itself is there.
    closeRange: facts.closeRangeCloexec === true || facts.closeRangeCloexec === "EINVAL",
    hardDataBytes: hardLimits.dataBytes ?? -1,
    hardCpuSeconds: hardLimits.cpuSeconds ?? -1,
    hardStackBytes: hardLimits.stackBytes ?? -1,
  };
}

/** What a kernel without Landlock answers: not built in, or not enabled at boot. */
const LANDLOCK_ABSENT: readonly string[] = ["ENOSYS", "EOPNOTSUPP"];

function landlockProblem(code: string): string {
  if (code === "ENOSYS") return "it is not built into this kernel";
  if (code === "EOPNOTSUPP") return "it is not enabled at boot";
  return `asking for it is refused (${code})`;
}

/** Without the launcher library nothing can be asked and nothing launched; asking throws then. */
function askThrough(sources: ProbeSources, blockers: Blocker[]): KernelFacts {
  try {
    return sources.kernel();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    blockers.push(
      block("launcher_unusable", `The launcher library cannot be used: ${why}.`, "run `npm run build`"),
    );
    return NO_KERNEL_FACTS;
  }
}

const OS_NAMES: Readonly<Record<string, HostFacts["os"]>> = {
  darwin: "macos",
  win32: "windows",
  linux: "linux",
};

function unavailable(sources: ProbeSources): HostCapabilities {
  const os = OS_NAMES[sources.platform] ?? "other";
  const blocker: Blocker = {
    control: null,
    code: "backend_not_built",
    message: `flowcell cannot confine a worker on ${os === "other" ? sources.platform : os}: this build has no backend for it.`,
    remedy: "run flowcell on Linux, in a virtual machine or a container if need be",
  };
  return {
    backend: "none",
    available: false,
    blockers: [blocker],
    isolation: "compartment",
    controls: noControls(blocker.message),
    facts: {
      os,
      arch: sources.arch,
      kernelRelease: sources.kernelRelease,
      bootId: "",
      kernel: NO_KERNEL_FACTS,
      yamaPtraceScope: null,
      seccompActions: [],
      self: null,
    },
  };
}

const NO_KERNEL_FACTS: KernelFacts = {
  landlockAbi: 0,
  landlockProblem: "not asked",
  landlockRefused: false,
  seccompFilter: false,
  seccompThreadSync: false,
  seccompKillProcess: false,
  memoryDenyWriteExecute: false,
  closeRange: false,
  hardDataBytes: 0,
  hardCpuSeconds: 0,
  hardStackBytes: 0,
};

function noControls(missing: string): readonly ControlStatus[] {
  return CONTROLS.map((control) => ({ control, state: "absent", layers: [], missing }));
}

function line(proc: ProcReader, path: string): string | undefined {
  try {
    return proc.text(path, TEXT_MAX).trim();
  } catch {
    return undefined; // not there: every caller treats that as "not known"
  }
}

function numberLine(proc: ProcReader, path: string): number | null {
  const text = line(proc, path);
  return text !== undefined && /^[0-9]{1,9}$/.test(text) ? Number(text) : null;
}

function block(code: BlockerCode, message: string, remedy: string, control: Control | null = null): Blocker {
  return { control, code, message, remedy };
}

function readSelf(sources: ProbeSources, blockers: Blocker[]): HostFacts["self"] {
  const { proc } = sources;
  let status: ProcStatus;
  try {
    if (!proc.isProcfs("/proc")) {
      blockers.push(block("proc_unusable", "/proc is not a procfs.", "mount procfs on /proc"));
      return null;
    }
    status = parseStatus(proc.text("/proc/self/status", TEXT_MAX));
  } catch (error) {
    const why = error instanceof ProcTextError ? error.message : errorCode(error);
    const old = error instanceof ProcTextError && error.message.includes("Seccomp_filters");
    blockers.push(
      old
        ? block(
            "kernel_too_old",
            `Linux ${sources.kernelRelease} does not count seccomp filters.`,
            "use Linux 5.10 or newer",
          )
        : block("proc_unusable", `/proc/self/status cannot be read (${why}).`, "mount procfs on /proc"),
    );
    return null;
  }
  if (status.pid !== sources.pid) {
    blockers.push(
      block(
        "proc_unusable",
        `/proc belongs to another process namespace: it calls this process ${status.pid}, not ${sources.pid}.`,
        "mount procfs anew inside the namespace",
      ),
    );
    return null;
  }
  const canTrace = (status.capEffective & CAP_SYS_PTRACE) !== 0n;
  if (!canTrace && procHidesProcesses(proc)) {
    blockers.push(
      block(
        "proc_hidden",
        "/proc is mounted with hidepid, which hides a confined worker from its own parent.",
        "mount /proc with hidepid=0, or run flowcell with CAP_SYS_PTRACE",
      ),
    );
  }
  const both = CAP_SETUID | CAP_SETGID;
  return {
    pid: status.pid,
    uid: status.uid,
    gid: status.gid,
    groups: status.groups,
    seccompFilters: status.seccompFilters,
    canTrace,
    canChangeIdentity: (status.capEffective & both) === both,
    storeBypass: status.storeBypass,
    indirectBranch: status.indirectBranch,
  };
}

/** Whether the procfs on /proc hides other processes from those who may not trace them. */
function procHidesProcesses(proc: ProcReader): boolean {
  let text: string;
  try {
    text = proc.text("/proc/self/mountinfo", MOUNTS_TEXT_MAX);
  } catch {
    return false; // an observation that fails for this reason refuses the worker anyway, with a worse message
  }
  // The last mount on a path is the visible one. Fields: … root mountpoint options … - type source superoptions
  const last = text
    .split("\n")
    .map((entry) => entry.split(" "))
    .filter((fields) => fields[4] === "/proc")
    .at(-1);
  return (
    last !== undefined &&
    /(?:^|,)hidepid=(?:[124]|noaccess|invisible|ptraceable)(?:,|$)/.test(last.at(-1) ?? "")
  );
}

const SUPPORTED_ARCHES: readonly string[] = ["x64", "arm64"];

function kernelBlockers(facts: HostFacts): Blocker[] {
  const { kernel } = facts;
  const blockers: Blocker[] = [];
  if (!SUPPORTED_ARCHES.includes(facts.arch)) {
    blockers.push(
      block(
        "architecture_unsupported",
        `No filter for ${facts.arch} exists.`,
        "use a 64-bit x86 or ARM machine",
      ),
    );
  }
  if (!kernel.seccompFilter || !kernel.seccompThreadSync || !kernel.seccompKillProcess) {
    const lacks = [
      ...(kernel.seccompFilter ? [] : ["filters"]),
      ...(kernel.seccompThreadSync ? [] : ["thread synchronisation"]),
      ...(kernel.seccompKillProcess ? [] : ["the kill-process action"]),
    ];
    blockers.push(
      block(
        "seccomp_missing",
        `This kernel (${facts.kernelRelease}) offers no seccomp ${lacks.join(", ")}.`,
        "use Linux 5.10 or newer with CONFIG_SECCOMP_FILTER, and let a container around flowcell allow seccomp(2)",
        "syscall_filter",
      ),
    );
  }
  if (!kernel.closeRange) {
    blockers.push(
      block(
        "kernel_too_old",
        `This kernel (${facts.kernelRelease}) has no close_range, or a filter around flowcell refuses it.`,
        "use Linux 5.10 or newer, and let a container around flowcell allow close_range(2)",
        "descriptor_closed",
      ),
    );
  }
  return blockers;
}

/** A worker takes the identity 65534 when its parent is root and keeps its parent's otherwise; nothing in between. */
function identityBlockers(facts: HostFacts, proc: ProcReader): Blocker[] {
  const { self } = facts;
  if (self === null) return [];
  const same = (ids: IdQuadruple): boolean => ids.every((id) => id === ids[0]);
  if (!same(self.uid) || !same(self.gid)) {
    return [
      block(
        "identity_mixed",
        "This process runs with different real, effective and saved identities.",
        "start flowcell without set-id bits and without a half-done setuid",
        "identity_dropped",
      ),
    ];
  }
  if (!isRoot(self)) return [];
  if (!self.canChangeIdentity) {
    return [
      block(
        "identity_not_droppable",
        "This process is root without CAP_SETUID and CAP_SETGID, so its workers would stay root.",
        "run flowcell as an ordinary user, or give it both capabilities",
        "identity_dropped",
      ),
    ];
  }
  for (const map of ["/proc/self/uid_map", "/proc/self/gid_map"]) {
    const text = line(proc, map);
    if (text !== undefined && !mapsNobody(text)) {
      return [
        block(
          "identity_not_droppable",
          `This user namespace does not map ${NOBODY} (${map}), so root cannot be given up.`,
          `map id ${NOBODY} into the namespace, or run flowcell as an ordinary user in it`,
          "identity_dropped",
        ),
      ];
    }
  }
  return [];
}

function mapsNobody(map: string): boolean {
  return map.split("\n").some((entry) => {
    const [first, , length] = entry.trim().split(/ +/).map(Number);
    return first !== undefined && length !== undefined && first <= NOBODY && NOBODY < first + length;
  });
}

/** Whether workers of this process must give up root. */
export function isRoot(self: { readonly uid: IdQuadruple }): boolean {
  return self.uid[0] === 0;
}
