// Verification of Welcome: is what the worker says about itself exactly what the plan says it must be?
//
// Called by the acceptance of a worker (accept.ts) and by doctor, once per worker, before any byte of a script is sent.
// TRUST: the facts come from a process that may be subverted; protocol/welcome.ts has established their form only. This
// establishes that the worker claims to be what the plan wants. A lie is caught by the observation (observe.ts) as far
// as the kernel lets a parent see; what it cannot see is said in docs/CONFINEMENT.md.
// Kept true: every field of Welcome has a row here, and every row is judged by equality with one value that the plan
// computed beforehand. There is no range, no "at least" and no field that is only looked at.
import type { WelcomeFacts, WelcomeFieldName } from "@flowcell/protocol";
import type { Control } from "./controls.js";

/** Why a field must have the plan's value, what it speaks for, and what an operator can do when it has not. */
export interface FactRow {
  /** The rule in words; the value is the plan's. */
  readonly rule: string;
  /** Controls that cannot be held when this fact is wrong. The first names the refusal. */
  readonly controls: readonly Control[];
  readonly remedy: string;
}

const REBUILD = "use the parent and the worker of one build: `npm run build`, then restart the service";
const REPORT =
  "report it with the output of `flowcell doctor`; the worker was killed before it received anything";
const SAME_HOST = "restart the service, which asks this host again what it offers; if it stays, report it";
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

/** The rule of every fact. */
export const FACT_ROWS: Readonly<Record<WelcomeFieldName, FactRow>> = {
  protocol: {
    rule: "the version that this parent speaks",
    controls: ["engine_compartment"],
    remedy: REBUILD,
  },
  buildId: {
    rule: "the build that the plan was compiled for",
    controls: ["engine_compartment"],
    remedy: REBUILD,
  },
  fingerprint: {
    rule: "the engine, prelude and codec of that build",
    controls: ["engine_compartment"],
    remedy: REBUILD,
  },
  os: { rule: "the system that the plan was compiled for", controls: ["syscall_filter"], remedy: REBUILD },
  arch: {
    rule: "the processor that the plan was compiled for",
    controls: ["syscall_filter"],
    remedy: REBUILD,
  },
  seccompSha256: {
    rule: "the filter of that build, instruction for instruction",
    controls: FILTER,
    remedy: REBUILD,
  },
  seccompLength: {
    rule: "the filter of that build, with all its instructions",
    controls: FILTER,
    remedy: REBUILD,
  },
  seccompTsync: { rule: "true: the filter holds for every thread", controls: FILTER, remedy: REPORT },
  landlockAbi: {
    rule: "the newest Landlock that both this kernel and the worker know; 0 only where the kernel has none",
    controls: ["filesystem_deny", "network_deny"],
    remedy: SAME_HOST,
  },
  noNewPrivs: { rule: "true", controls: ["syscall_filter", "process_deny"], remedy: REPORT },
  dumpable: { rule: "false", controls: ["ptrace_deny"], remedy: REPORT },
  mdwe: { rule: "true exactly where this kernel has it", controls: ["exec_memory_deny"], remedy: SAME_HOST },
  threads: { rule: "1", controls: ["thread_deny"], remedy: REPORT },
  uid: {
    rule: "65534 under a root parent, else the parent's",
    controls: ["identity_dropped"],
    remedy: REPORT,
  },
  gid: {
    rule: "65534 under a root parent, else the parent's",
    controls: ["identity_dropped"],
    remedy: REPORT,
  },
  groups: {
    rule: "none under a root parent, else the parent's",
    controls: ["identity_dropped"],
    remedy: SAME_HOST,
  },
  capEffective: { rule: "no capability", controls: ["identity_dropped"], remedy: REPORT },
  capPermitted: { rule: "no capability", controls: ["identity_dropped"], remedy: REPORT },
  capInheritable: { rule: "no capability", controls: ["identity_dropped"], remedy: REPORT },
  capAmbient: { rule: "no capability", controls: ["identity_dropped"], remedy: REPORT },
  limitCore: { rule: "0", controls: ["memory_limit", "ptrace_deny"], remedy: REPORT },
  limitData: { rule: "the plan's", controls: ["memory_limit"], remedy: SAME_HOST },
  limitCpu: { rule: "the plan's", controls: ["cpu_limit"], remedy: SAME_HOST },
  limitStack: { rule: "the plan's", controls: ["memory_limit"], remedy: SAME_HOST },
  limitNofile: { rule: "3", controls: ["descriptor_closed", "filesystem_deny"], remedy: REPORT },
  limitFsize: { rule: "0", controls: ["filesystem_deny"], remedy: REPORT },
  limitNproc: { rule: "0", controls: ["process_deny", "thread_deny"], remedy: REPORT },
  descriptors: { rule: "exactly 0, 1 and 2", controls: ["descriptor_closed"], remedy: REPORT },
  environmentCount: { rule: "0", controls: ["environment_empty"], remedy: REPORT },
  specStoreBypass: {
    rule: "off where this kernel lets a thread choose",
    controls: ["engine_compartment"],
    remedy: SAME_HOST,
  },
  specIndirectBranch: {
    rule: "off where this kernel lets a thread choose",
    controls: ["engine_compartment"],
    remedy: SAME_HOST,
  },
};

/** The names of all facts, in the order of the wire. */
export const FACT_NAMES: readonly WelcomeFieldName[] = Object.freeze(
  Object.keys(FACT_ROWS) as WelcomeFieldName[], // the keys of a literal record of exactly these names
);

/** One fact that is not what the plan demands. */
export interface FactRefusal {
  readonly fact: WelcomeFieldName;
  readonly expected: string;
  readonly actual: string;
  readonly controls: readonly Control[];
  /** What was claimed, what must be, and for what. */
  readonly message: string;
  readonly remedy: string;
}

/** Every fact that differs from what the plan expects, in the order of the wire; none when the Welcome is right. */
export function judgeWelcome(expected: WelcomeFacts, claimed: WelcomeFacts): readonly FactRefusal[] {
  return FACT_NAMES.flatMap((fact) => {
    const want = expected[fact];
    const have = claimed[fact];
    // Object.is: a missing field is undefined and equals nothing that a plan expects; -0 is not 0.
    if (Object.is(want, have)) return [];
    const row = FACT_ROWS[fact];
    return [
      {
        fact,
        expected: String(want),
        actual: shown(have),
        controls: row.controls,
        message: `the worker's ${fact} is ${shown(have)}, the plan demands ${String(want)} (${row.rule})`,
        remedy: row.remedy,
      },
    ];
  });
}

/** Bounded: the value is the worker's. */
function shown(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}
