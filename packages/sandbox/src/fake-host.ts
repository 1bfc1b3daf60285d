// A Linux host and a confined worker as texts, for tests: what the kernel would say, with any line changed.
// Used by the tests of this package only; not part of its interface.
import type { WelcomeFacts } from "@flowcell/protocol";
import type { WorkerBuild, WorkerBuildResult } from "./build.js";
import { identityOf, type PlanUse } from "./plan.js";
import { type KernelFacts, LINUX_BACKEND, type ProbeSources } from "./probe.js";
import type { FileIdentity, ProcReader } from "./proc-reader.js";

/** Process id of the parent in these texts. */
export const PARENT_PID = 77;
/** Process id of the worker in these texts. */
export const WORKER_PID = 412;
export const BOOT_ID = "0b7f4c0e-58a5-4c1b-9e0c-3a1f1d0c9d11";
export const WORKER_PATH = "/opt/flowcell/worker-native/build/bin/worker";

/** The user and group of a parent of this kind. */
export function parentId(user: "root" | "ordinary"): number {
  return user === "root" ? 0 : 1000;
}

/** Where a plan of the fake host is valid. */
export function fakeUse(user: "root" | "ordinary"): PlanUse {
  return { backend: LINUX_BACKEND, bootId: BOOT_ID, identity: identityOf(parentId(user), parentId(user)) };
}

/** An answer of the fake kernel: a text, or the code of the error it gives. */
export type Answer = string | { readonly fails: string };

/** What the fake kernel knows. */
export interface FakeKernel {
  readonly texts: Map<string, Answer>;
  readonly folders: Map<string, readonly string[] | { readonly fails: string }>;
  readonly identities: Map<string, FileIdentity | { readonly fails: string }>;
  procfs: boolean;
}

function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}

function get<T>(table: Map<string, T | { readonly fails: string }>, path: string): T {
  const found = table.get(path);
  if (found === undefined) throw failure("ENOENT", path);
  if (typeof found === "object" && found !== null && "fails" in found) throw failure(found.fails, path);
  return found;
}

/** Reads from a fake kernel, with the bounds of the real reader. */
export function fakeProc(kernel: FakeKernel): ProcReader {
  return {
    text(path, bytesMax) {
      const text = get(kernel.texts, path) as string; // an Answer that does not fail is a text
      if (Buffer.byteLength(text) > bytesMax) throw failure("EFBIG", path);
      return text;
    },
    names: (path) => get(kernel.folders, path),
    identity: (path) => get(kernel.identities, path),
    isProcfs: () => kernel.procfs,
  };
}

/** Lines of a status text that differ from the usual. */
export type StatusChanges = Readonly<Record<string, string>>;

/** /proc/PID/status with some lines changed; an empty change removes the line. */
export function statusText(lines: StatusChanges): string {
  return Object.entries(lines)
    .filter(([, value]) => value !== "")
    .map(([key, value]) => `${key}:\t${value}\n`)
    .join("");
}

function ids(id: number): string {
  return `${id}\t${id}\t${id}\t${id}`;
}

const EVERY_CAPABILITY = "000001ffffffffff";
const NO_CAPABILITY = "0000000000000000";

/** The parent's own status: root with every capability, or an ordinary user with none. */
export function parentStatus(user: "root" | "ordinary"): Record<string, string> {
  const root = user === "root";
  return {
    Name: "node",
    State: "R (running)",
    Tgid: String(PARENT_PID),
    Pid: String(PARENT_PID),
    PPid: "1",
    TracerPid: "0",
    Uid: ids(root ? 0 : 1000),
    Gid: ids(root ? 0 : 1000),
    Groups: root ? "0 " : "4 1000 ",
    Threads: "11",
    SigBlk: NO_CAPABILITY,
    SigIgn: "0000000001001000",
    SigCgt: "0000000108004602",
    CapInh: NO_CAPABILITY,
    CapPrm: root ? EVERY_CAPABILITY : NO_CAPABILITY,
    CapEff: root ? EVERY_CAPABILITY : NO_CAPABILITY,
    CapBnd: EVERY_CAPABILITY,
    CapAmb: NO_CAPABILITY,
    CoreDumping: "0",
    NoNewPrivs: "0",
    Seccomp: "0",
    Seccomp_filters: "0",
    Speculation_Store_Bypass: "thread vulnerable",
    SpeculationIndirectBranch: "conditional enabled",
  };
}

/** The status of a worker that is confined as it should be. */
export function workerStatus(user: "root" | "ordinary"): Record<string, string> {
  const root = user === "root";
  return {
    ...parentStatus(user),
    Name: "worker",
    State: "S (sleeping)",
    Tgid: String(WORKER_PID),
    Pid: String(WORKER_PID),
    PPid: String(PARENT_PID),
    Uid: ids(root ? 65_534 : 1000),
    Gid: ids(root ? 65_534 : 1000),
    Groups: root ? " " : "4 1000 ",
    Threads: "1",
    SigIgn: NO_CAPABILITY,
    SigCgt: "0000000000000440",
    CapPrm: NO_CAPABILITY,
    CapEff: NO_CAPABILITY,
    NoNewPrivs: "1",
    Seccomp: "2",
    Seccomp_filters: "1",
    Speculation_Store_Bypass: "thread force mitigated",
    SpeculationIndirectBranch: "conditional force disabled",
  };
}

/** /proc/PID/limits of a worker. */
export function limitsText(facts: WelcomeFacts): string {
  const row = (name: string, value: number, unit: string): string =>
    `${name.padEnd(26)}${String(value).padEnd(21)}${String(value).padEnd(21)}${unit.padEnd(10)}\n`;
  return [
    `${"Limit".padEnd(26)}${"Soft Limit".padEnd(21)}${"Hard Limit".padEnd(21)}${"Units".padEnd(10)}\n`,
    row("Max cpu time", facts.limitCpu, "seconds"),
    row("Max file size", facts.limitFsize, "bytes"),
    row("Max data size", facts.limitData, "bytes"),
    row("Max stack size", facts.limitStack, "bytes"),
    row("Max core file size", facts.limitCore, "bytes"),
    row("Max processes", facts.limitNproc, "processes"),
    row("Max open files", facts.limitNofile, "files"),
  ].join("");
}

const MAPS = [
  `7f0000000000-7f0000200000 r-xp 00001000 fe:00 123                        ${WORKER_PATH}`,
  "7f0000200000-7f0000300000 rw-p 00000000 00:00 0 ",
  "7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0                          [vdso]",
  "",
].join("\n");

/** A host on which a parent of the given kind runs. */
export function fakeHost(user: "root" | "ordinary"): FakeKernel {
  return {
    texts: new Map<string, Answer>([
      ["/proc/self/status", statusText(parentStatus(user))],
      ["/proc/self/mountinfo", "25 30 0:24 / /proc rw,nosuid,nodev,noexec shared:13 - proc proc rw\n"],
      ["/proc/self/uid_map", "         0          0 4294967295\n"],
      ["/proc/self/gid_map", "         0          0 4294967295\n"],
      ["/proc/sys/kernel/random/boot_id", `${BOOT_ID}\n`],
      ["/proc/sys/kernel/yama/ptrace_scope", "1\n"],
      [
        "/proc/sys/kernel/seccomp/actions_avail",
        "kill_process kill_thread trap errno user_notif trace log allow\n",
      ],
    ]),
    folders: new Map(),
    identities: new Map([[WORKER_PATH, { uid: 0, device: 65_024, inode: 123 }]]),
    procfs: true,
  };
}

/** Adds a worker that is confined as its plan demands. */
export function addWorker(kernel: FakeKernel, user: "root" | "ordinary", facts: WelcomeFacts): void {
  const folder = `/proc/${WORKER_PID}`;
  const secret = <T>(value: T): T | { readonly fails: string } =>
    user === "root" ? value : { fails: "EACCES" };
  kernel.texts.set(`${folder}/status`, statusText(workerStatus(user)));
  kernel.texts.set(`${folder}/limits`, limitsText(facts));
  kernel.texts.set(
    `${folder}/stat`,
    `${WORKER_PID} (worker) S ${PARENT_PID} ${WORKER_PID} ${WORKER_PID} 0 -1 4194560 90 0 0 0 0 0 0 0 20 0 1 0 9 8 4\n`,
  );
  kernel.texts.set(`${folder}/task/${WORKER_PID}/children`, "");
  kernel.texts.set(`${folder}/maps`, secret(MAPS));
  kernel.texts.set(`${folder}/environ`, secret(""));
  kernel.folders.set(`${folder}/fd`, secret(["0", "1", "2"]));
  kernel.identities.set(`${folder}/stat`, { uid: 0, device: 24, inode: 9_001 });
  kernel.identities.set(`${folder}/exe`, secret({ uid: 0, device: 65_024, inode: 123 }));
}

/** What a recent kernel answers. */
export const KERNEL_FACTS: KernelFacts = {
  landlockAbi: 7,
  landlockProblem: "",
  landlockRefused: false,
  seccompFilter: true,
  seccompThreadSync: true,
  seccompKillProcess: true,
  memoryDenyWriteExecute: true,
  closeRange: true,
  hardDataBytes: -1,
  hardCpuSeconds: -1,
  hardStackBytes: -1,
};

/** Sources of the probe on the fake host. */
export function fakeSources(kernel: FakeKernel, facts: Partial<KernelFacts> = {}): ProbeSources {
  return {
    platform: "linux",
    arch: "x64",
    kernelRelease: "6.18.0",
    pid: PARENT_PID,
    proc: fakeProc(kernel),
    kernel: () => ({ ...KERNEL_FACTS, ...facts }),
  };
}

/** A worker build for the fake host. */
export const FAKE_BUILD: WorkerBuild = {
  format: 1,
  buildId: "b1".repeat(32),
  fingerprint: "f1".repeat(32),
  os: "linux",
  arch: "x64",
  worker: { file: "bin/worker", bytes: 3_000_000, sha256: "a1".repeat(32) },
  seccomp: {
    x64: { sha256: "51".repeat(32), length: 31 },
    arm64: { sha256: "52".repeat(32), length: 29 },
  },
  landlockAbiMax: 11,
  memory: { imageBytes: 6 * 1024 * 1024, engineStackBytes: 64 * 1024 * 1024 },
};

/** The same as it is read from a folder. */
export const FAKE_WORKER: WorkerBuildResult = { ok: true, build: FAKE_BUILD, workerPath: WORKER_PATH };
