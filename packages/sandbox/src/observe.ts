// Observation: what the parent sees of a worker with its own eyes, after Welcome and before the first byte of a script.
//
// Called by the acceptance of every worker (accept.ts) and by doctor. The worker has said its Welcome and waits in a
// read; what the kernel says about it is compared with what the plan demands, which is also what the Welcome claimed.
// A contradiction, or a required text that cannot be read, refuses the worker.
//
// Every worker is observed in full, not only the first of a plan: the whole observation costs less than a
// millisecond (some ten reads of /proc; docs/CONFINEMENT.md has the figure), a worker is started long before it is needed,
// and a smaller look at later workers would be exactly where a subverted launcher or a race would hide.
//
// TRUST: the kernel's texts, read strictly (proc-text.ts). The pid is that of a child which nobody else collects, so it
// cannot have been reused. What only a holder of CAP_SYS_PTRACE may see is judged where it can be seen and reported as
// skipped where not; the other way round, an ordinary parent that *can* see it has proof that the worker is dumpable.
import type { Control } from "./controls.js";
import type { PlanState } from "./plan.js";
import { errorCode, hostProc, type ProcReader } from "./proc-reader.js";
import {
  type IdQuadruple,
  type ProcLimit,
  ProcTextError,
  parseChildren,
  parseLimits,
  parseMaps,
  parseStat,
  parseStatus,
} from "./proc-text.js";
import { speculationWords } from "./speculation.js";

/** What is looked at. Append only: reports name them. */
export const OBSERVATIONS = [
  "process",
  "tracer",
  "user",
  "group",
  "groups",
  "capabilities",
  "threads",
  "no_new_privs",
  "seccomp_mode",
  "seccomp_filters",
  "signals",
  "speculation",
  "limit_cpu",
  "limit_data",
  "limit_stack",
  "limit_core",
  "limit_fsize",
  "limit_nproc",
  "limit_nofile",
  "session",
  "dumpable",
  "children",
  "memory_unreadable",
  "mappings",
  "descriptors",
  "environment",
  "executable",
] as const;
export type ObservationName = (typeof OBSERVATIONS)[number];

/**
 * - `agrees`: seen, and as the plan demands
 * - `contradicts`: seen, and different: the worker is refused
 * - `unreadable`: had to be seen and could not: the worker is refused
 * - `skipped`: this parent may not see it, or the kernel does not offer it; the note says which
 */
export type ObservationState = "agrees" | "contradicts" | "unreadable" | "skipped";

/** One thing that was looked at. */
export interface ObservationRow {
  readonly name: ObservationName;
  readonly state: ObservationState;
  readonly expected: string;
  readonly found: string;
  /** Why it was skipped or could not be read; else empty. */
  readonly note: string;
}

/** Everything that was looked at, in the order of `OBSERVATIONS`. */
export type Observation = readonly ObservationRow[];

const FILTER: readonly Control[] = [
  "syscall_filter",
  "filesystem_deny",
  "network_deny",
  "process_deny",
  "thread_deny",
  "exec_memory_deny",
  "signal_deny",
  "ptrace_deny",
];

/** Where an observation comes from, what must be seen, and for which controls that speaks. */
export interface ObservationRule {
  /** File below /proc/PID. */
  readonly source: string;
  readonly rule: string;
  /** None: good order at launch that no single control names. It refuses the worker all the same. */
  readonly controls: readonly Control[];
}

/** The rule of every observation; scripts/generate-confinement.mjs prints it into docs/CONFINEMENT.md. */
export const OBSERVATION_RULES: Readonly<Record<ObservationName, ObservationRule>> = {
  process: {
    source: "status, stat",
    rule: "the launched process, alive, a child of this one",
    controls: ["parent_death"],
  },
  tracer: { source: "status", rule: "no tracer, no core dump in progress", controls: ["ptrace_deny"] },
  user: { source: "status", rule: "all four user ids are the plan's", controls: ["identity_dropped"] },
  group: { source: "status", rule: "all four group ids are the plan's", controls: ["identity_dropped"] },
  groups: {
    source: "status",
    rule: "none under a root parent, else exactly the parent's",
    controls: ["identity_dropped"],
  },
  capabilities: {
    source: "status",
    rule: "none inheritable, permitted, effective or ambient",
    controls: ["identity_dropped"],
  },
  threads: { source: "status, stat", rule: "1", controls: ["thread_deny"] },
  no_new_privs: { source: "status", rule: "1", controls: ["syscall_filter"] },
  seccomp_mode: { source: "status", rule: "2, a filter", controls: FILTER },
  seccomp_filters: {
    source: "status",
    rule: "the parent's own filters and exactly one more",
    controls: FILTER,
  },
  signals: { source: "status", rule: "none blocked or ignored, only memory faults caught", controls: [] },
  speculation: { source: "status", rule: "the words that fit the claimed facts", controls: [] },
  limit_cpu: { source: "limits", rule: "the plan's, soft and hard", controls: ["cpu_limit"] },
  limit_data: { source: "limits", rule: "the plan's, soft and hard", controls: ["memory_limit"] },
  limit_stack: { source: "limits", rule: "the plan's, soft and hard", controls: ["memory_limit"] },
  limit_core: { source: "limits", rule: "0", controls: ["ptrace_deny"] },
  limit_fsize: { source: "limits", rule: "0", controls: ["filesystem_deny"] },
  limit_nproc: { source: "limits", rule: "0", controls: ["process_deny", "thread_deny"] },
  limit_nofile: { source: "limits", rule: "3", controls: ["filesystem_deny"] },
  session: { source: "stat", rule: "a session and process group of its own, no terminal", controls: [] },
  dumpable: {
    source: "owner of stat",
    rule: "not the worker's own user, so it is not dumpable",
    controls: ["ptrace_deny"],
  },
  children: { source: "task/PID/children", rule: "none", controls: ["process_deny"] },
  memory_unreadable: {
    source: "maps",
    rule: "refused to this process, unless it holds CAP_SYS_PTRACE (then skipped)",
    controls: ["ptrace_deny"],
  },
  mappings: {
    source: "maps",
    rule: "with CAP_SYS_PTRACE: none writable and executable, shared, or executable without a file",
    controls: ["exec_memory_deny"],
  },
  descriptors: {
    source: "fd",
    rule: "with CAP_SYS_PTRACE: exactly 0, 1 and 2",
    controls: ["descriptor_closed"],
  },
  environment: { source: "environ", rule: "with CAP_SYS_PTRACE: empty", controls: ["environment_empty"] },
  executable: {
    source: "exe",
    rule: "with CAP_SYS_PTRACE: the file of the plan",
    controls: ["engine_compartment"],
  },
};

/** Rows that refuse the worker. */
export function contradictions(observation: Observation): readonly ObservationRow[] {
  return observation.filter((row) => row.state === "contradicts" || row.state === "unreadable");
}

/** Most bytes of one text; a worker has about twenty mappings and 1.5 KiB of status. */
const TEXT_MAX = 64 * 1024;

/** SIGBUS and SIGSEGV: the worker handles memory faults, which the engine's guard pages cause on purpose. */
const SIGNALS_CAUGHT = (1n << 6n) | (1n << 10n);

/** Looks at the worker `pid` of a plan. Never throws for what it finds. */
export function observeWorker(plan: PlanState, pid: number, proc: ProcReader = hostProc): Observation {
  const rows = new Map<ObservationName, ObservationRow>();
  const look = new Look(rows);
  const folder = `/proc/${pid}`;
  const ended = lookAtStat(look, pid, () => proc.text(`${folder}/stat`, TEXT_MAX));
  lookAtStatus(look, plan, pid, () => {
    // The status of a process that has ended lacks half of its lines.
    if (ended) throw new ProcTextError("the worker has ended");
    return proc.text(`${folder}/status`, TEXT_MAX);
  });
  lookAtLimits(look, plan, () => proc.text(`${folder}/limits`, TEXT_MAX));
  look.required(["dumpable"], () => {
    // The kernel gives the files of a process that is not dumpable to root, whoever runs it.
    const owner = proc.identity(`${folder}/stat`).uid;
    const worker = plan.expected.uid;
    look.judge("dumpable", owner !== worker, `files not owned by ${worker}`, `owned by ${owner}`);
  });
  lookAtChildren(look, () => proc.text(`${folder}/task/${pid}/children`, TEXT_MAX));
  lookAtMemory(look, plan, () => proc.text(`${folder}/maps`, TEXT_MAX));
  lookAtPrivate(look, plan, folder, proc);
  return OBSERVATIONS.map((name) => {
    const row = rows.get(name);
    // A row that no branch wrote is a bug of this file; it must not pass for an agreement.
    return row ?? { name, state: "unreadable", expected: "", found: "", note: "it was not looked at" };
  });
}

/** Collects rows; the first finding of each name stays, unless a later one contradicts. */
class Look {
  readonly #rows: Map<ObservationName, ObservationRow>;

  constructor(rows: Map<ObservationName, ObservationRow>) {
    this.#rows = rows;
  }

  judge(name: ObservationName, agrees: boolean, expected: string, found: string): void {
    const before = this.#rows.get(name);
    if (before !== undefined && (before.state !== "agrees" || agrees)) return;
    this.#rows.set(name, { name, state: agrees ? "agrees" : "contradicts", expected, found, note: "" });
  }

  equal(name: ObservationName, expected: string | number, found: string | number): void {
    this.judge(name, expected === found, String(expected), String(found));
  }

  skip(name: ObservationName, note: string): void {
    if (!this.#rows.has(name))
      this.#rows.set(name, { name, state: "skipped", expected: "", found: "", note });
  }

  /** Runs one look; what throws makes all its names unreadable. */
  required(names: readonly ObservationName[], run: () => void): void {
    try {
      run();
    } catch (error) {
      const note = error instanceof ProcTextError ? error.message : errorCode(error);
      const gone = note === "ENOENT" || note === "ESRCH";
      for (const name of names) {
        this.#rows.set(name, {
          name,
          state: "unreadable",
          expected: "",
          found: "",
          note: gone ? `${note}: the worker is gone` : note,
        });
      }
    }
  }
}

function all(ids: IdQuadruple): string {
  return ids.every((id) => id === ids[0]) ? String(ids[0]) : ids.join("/");
}

function lookAtStatus(look: Look, plan: PlanState, pid: number, read: () => string): void {
  const names: readonly ObservationName[] = [
    "process",
    "tracer",
    "user",
    "group",
    "groups",
    "capabilities",
    "threads",
    "no_new_privs",
    "seccomp_mode",
    "seccomp_filters",
    "signals",
    "speculation",
  ];
  look.required(names, () => {
    const status = parseStatus(read());
    const { expected, parent } = plan;
    look.equal("process", `${pid} child of ${parent.pid}`, `${status.pid} child of ${status.ppid}`);
    look.judge("process", status.tgid === pid, `thread group ${pid}`, `thread group ${status.tgid}`);
    look.equal("tracer", 0, status.tracerPid);
    look.equal("user", String(expected.uid), all(status.uid));
    look.equal("group", String(expected.gid), all(status.gid));
    look.equal("groups", (expected.groups === 0 ? [] : parent.groups).join(" "), status.groups.join(" "));
    const capabilities = [status.capInheritable, status.capPermitted, status.capEffective, status.capAmbient];
    look.judge(
      "capabilities",
      capabilities.every((set) => set === 0n),
      "none",
      capabilities.map((set) => set.toString(16)).join("/"),
    );
    look.equal("threads", 1, status.threads);
    look.equal("no_new_privs", 1, status.noNewPrivs);
    look.equal("seccomp_mode", 2, status.seccompMode);
    // A worker has the filters that its parent runs under, and exactly one more.
    look.equal("seccomp_filters", parent.seccompFilters + 1, status.seccompFilters);
    look.judge(
      "signals",
      status.signalsBlocked === 0n &&
        status.signalsIgnored === 0n &&
        (status.signalsCaught & ~SIGNALS_CAUGHT) === 0n,
      "none blocked or ignored, only memory faults caught",
      [status.signalsBlocked, status.signalsIgnored, status.signalsCaught]
        .map((set) => set.toString(16))
        .join("/"),
    );
    look.judge("tracer", status.coreDumping === 0, "no core dump in progress", "a core dump in progress");
    lookAtSpeculation(look, "storeBypass", expected.specStoreBypass, status.storeBypass);
    lookAtSpeculation(look, "indirectBranch", expected.specIndirectBranch, status.indirectBranch);
  });
}

function lookAtSpeculation(
  look: Look,
  control: "storeBypass" | "indirectBranch",
  fact: number,
  word: string | undefined,
): void {
  const words = speculationWords(control, fact);
  // Kernels without such a line have no such control.
  const agrees = word === undefined ? fact === 0 : words.includes(word);
  look.judge("speculation", agrees, `${control}: ${words.join(" or ")}`, `${control}: ${word ?? "no line"}`);
}

function lookAtLimits(look: Look, plan: PlanState, read: () => string): void {
  const names: readonly ObservationName[] = [
    "limit_cpu",
    "limit_data",
    "limit_stack",
    "limit_core",
    "limit_fsize",
    "limit_nproc",
    "limit_nofile",
  ];
  look.required(names, () => {
    const limits = parseLimits(read());
    const { expected } = plan;
    const both = (name: ObservationName, wanted: number, found: ProcLimit): void => {
      look.equal(name, `${wanted}/${wanted}`, `${found.soft}/${found.hard}`);
    };
    both("limit_cpu", expected.limitCpu, limits.cpuSeconds);
    both("limit_data", expected.limitData, limits.dataBytes);
    both("limit_stack", expected.limitStack, limits.stackBytes);
    both("limit_core", expected.limitCore, limits.coreBytes);
    both("limit_fsize", expected.limitFsize, limits.fileBytes);
    both("limit_nproc", expected.limitNproc, limits.processes);
    both("limit_nofile", expected.limitNofile, limits.openFiles);
  });
}

/** Whether the process has ended and was not collected yet. */
function lookAtStat(look: Look, pid: number, read: () => string): boolean {
  let ended = false;
  look.required(["session"], () => {
    const stat = parseStat(read());
    ended = stat.state === "Z" || stat.state === "X";
    look.equal(
      "session",
      `session ${pid}, group ${pid}, no terminal`,
      `session ${stat.session}, group ${stat.processGroup}, ${stat.terminal === 0 ? "no terminal" : `terminal ${stat.terminal}`}`,
    );
    look.judge("process", stat.pid === pid && "SRD".includes(stat.state), "alive", `state ${stat.state}`);
    look.judge("threads", stat.threads === 1, "1", String(stat.threads));
  });
  return ended;
}

function lookAtChildren(look: Look, read: () => string): void {
  look.required(["children"], () => {
    let text: string;
    try {
      text = read();
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw error;
      // The process itself was there a moment ago; a kernel may be built without this file.
      look.skip("children", "this kernel does not list children");
      return;
    }
    const children = parseChildren(text);
    look.equal("children", "none", children.length === 0 ? "none" : String(children.length));
  });
}

/** The memory map: an ordinary parent must be refused; one with CAP_SYS_PTRACE can read it, so it judges what it says. */
function lookAtMemory(look: Look, plan: PlanState, read: () => string): void {
  let text: string;
  try {
    text = read();
  } catch (error) {
    const code = errorCode(error);
    look.judge(
      "memory_unreadable",
      code === "EACCES" || code === "EPERM",
      "refused (EACCES)",
      `failed (${code})`,
    );
    look.skip("mappings", "the parent may not read the worker's memory map, as it should be");
    return;
  }
  if (!plan.parent.canTrace) {
    look.judge("memory_unreadable", false, "refused (EACCES)", "readable: the worker is dumpable");
    look.skip("mappings", "not judged: the map should not have been readable");
    return;
  }
  look.skip("memory_unreadable", "the parent holds CAP_SYS_PTRACE and may read every process");
  look.required(["mappings"], () => {
    const maps = parseMaps(text);
    const bad = maps.writableExecutable + maps.shared + maps.executableAnonymous;
    look.judge(
      "mappings",
      bad === 0 && maps.mappings > 0,
      "none writable and executable, shared, or executable without a file",
      `${maps.writableExecutable} writable and executable, ${maps.shared} shared, ${maps.executableAnonymous} executable without a file`,
    );
  });
}

/** What only a parent with CAP_SYS_PTRACE may see. */
function lookAtPrivate(look: Look, plan: PlanState, folder: string, proc: ProcReader): void {
  const privately = (name: ObservationName, run: () => void): void => {
    try {
      run();
    } catch (error) {
      const code = errorCode(error);
      const denied = code === "EACCES" || code === "EPERM";
      // An LSM may keep even a holder of the capability out; the rows that everybody can read remain.
      if (denied) look.skip(name, `the parent may not see this of a worker that is not dumpable (${code})`);
      else look.judge(name, false, "readable or refused", `failed (${code})`);
    }
  };
  privately("descriptors", () => {
    const names = [...proc.names(`${folder}/fd`)].sort().join(" ");
    look.equal("descriptors", "0 1 2", names);
  });
  privately("environment", () => {
    look.equal("environment", "0 bytes", `${proc.text(`${folder}/environ`, TEXT_MAX).length} bytes`);
  });
  privately("executable", () => {
    const running = proc.identity(`${folder}/exe`);
    const planned = proc.identity(plan.workerPath);
    const same = running.device === planned.device && running.inode === planned.inode;
    look.judge(
      "executable",
      same,
      "the worker of the plan",
      same ? "the worker of the plan" : "another file",
    );
  });
}
