// compile(): policy → plan, through four gates in this order. A plan, or typed blockers; nothing in between.
//
//   1. the policy is valid, and normalised
//   2. the backend is available: this host and this worker build can confine at all
//   3. the isolation level is one that the backend has
//   4. every control that the policy requires, by name or by implication, is enforced here
//
// The first gate that refuses ends the compilation, with every blocker of that gate. Approval is elsewhere: it decides
// whether something may be tried, this decides whether it can be confined, and neither replaces the other.
// Called by whoever opens a pool, and by doctor. Trust: `host` and `build` are this process's own findings (probe.ts,
// build.ts); the policy is data of an operator and is checked here whatever it looks like.
import { protocolVersion, type WelcomeFacts } from "@flowcell/protocol";
import type { Blocker } from "./blocker.js";
import type { WorkerBuild, WorkerBuildResult } from "./build.js";
import type { Control } from "./controls.js";
import type { ControlStatus } from "./linux-controls.js";
import { identityOf, makePlan, PLAN_FORMAT, type PlanLimits, type SandboxPlan } from "./plan.js";
import {
  formatProblem,
  ISOLATION_LEVELS,
  parsePolicy,
  type RequiredControl,
  requiredControls,
  type SandboxPolicy,
} from "./policy.js";
import { type HostCapabilities, isRoot, LINUX_BACKEND, NOBODY } from "./probe.js";
import { speculationFacts } from "./speculation.js";

/** The gates, in order. */
export type Gate = "policy" | "backend" | "isolation" | "controls";

/** Why there is no plan. */
export interface CompileFailure {
  readonly gate: Gate;
  readonly blockers: readonly Blocker[];
}

/** A plan, or why there is none. */
export type CompileResult =
  | { readonly ok: true; readonly plan: SandboxPlan }
  | { readonly ok: false; readonly failure: CompileFailure };

const MEBIBYTE = 1024 * 1024;

/** Main stack of the worker process; the engine runs on a stack of its own. */
const MAIN_STACK_BYTES = 8 * MEBIBYTE;

/** Room in the data limit for the worker's own data. */
const WORKER_DATA_BYTES = 16 * MEBIBYTE;

/** Argument of a worker whose operator accepts a kernel without Landlock. */
const LANDLOCK_OPTIONAL_ARGUMENT = "--danger-landlock-optional";

/** What the Linux backend demands whatever a policy says: it has one way to confine a worker, not several. */
const ALWAYS_REQUIRED: readonly Control[] = [
  "engine_compartment",
  "syscall_filter",
  "filesystem_deny",
  "network_deny",
  "process_deny",
  "thread_deny",
  "exec_memory_deny",
  "signal_deny",
  "ptrace_deny",
  "descriptor_closed",
  "environment_empty",
  "memory_limit",
  "cpu_limit",
  "parent_death",
];

/** Compiles a policy for this host and this worker build. */
export function compile(policy: unknown, host: HostCapabilities, worker: WorkerBuildResult): CompileResult {
  const parsed = parsePolicy(policy);
  if (!parsed.ok) {
    return refuse(
      "policy",
      parsed.problems.map((problem) => ({
        control: null,
        code: "policy_invalid",
        message: `The policy is not valid: ${formatProblem(problem)}.`,
        remedy: "correct the policy",
      })),
    );
  }
  const backend = backendBlockers(host, worker);
  if (backend.length > 0 || !worker.ok || host.facts.self === null) return refuse("backend", backend);
  const isolation = isolationBlockers(parsed.policy, host);
  if (isolation.length > 0) return refuse("isolation", isolation);

  const controls = withPolicy(host.controls, parsed.policy, host);
  const required = allRequired(parsed.policy);
  const limits = planLimits(parsed.policy, worker.build);
  const blockers = [
    ...modeBlockers(parsed.policy),
    ...controlBlockers(required, controls, host),
    ...limitBlockers(limits, host),
  ];
  if (blockers.length > 0) return refuse("controls", blockers);

  const { self } = host.facts;
  return {
    ok: true,
    plan: makePlan({
      format: PLAN_FORMAT,
      backend: LINUX_BACKEND,
      os: "linux",
      kernelRelease: host.facts.kernelRelease,
      bootId: host.facts.bootId,
      policy: parsed.policy,
      required,
      controls,
      build: worker.build,
      workerPath: worker.workerPath,
      args: parsed.policy.landlock === "dangerOptional" ? [LANDLOCK_OPTIONAL_ARGUMENT] : [],
      limits,
      expected: expectedFacts(host, self, worker.build, limits),
      parent: {
        pid: self.pid,
        identity: identityOf(self.uid[1], self.gid[1]),
        groups: self.groups,
        seccompFilters: self.seccompFilters,
        canTrace: self.canTrace,
        storeBypass: self.storeBypass,
        indirectBranch: self.indirectBranch,
      },
    }),
  };
}

function refuse(gate: Gate, blockers: readonly Blocker[]): CompileResult {
  return { ok: false, failure: { gate, blockers } };
}

/** One text for people: every blocker on a line of its own, and that nothing was run. */
export function formatFailure(failure: CompileFailure): string {
  const lines = failure.blockers.map((blocker) => {
    const remedy = blocker.remedy.charAt(0).toUpperCase() + blocker.remedy.slice(1);
    return `sandbox_unavailable: ${blocker.message} ${remedy}.`;
  });
  return [...lines, "Nothing was run."].join("\n");
}

function backendBlockers(host: HostCapabilities, worker: WorkerBuildResult): readonly Blocker[] {
  const blockers = [...host.blockers];
  if (!worker.ok) {
    // Where no worker can exist, its absence is not what the operator has to hear about.
    if (host.facts.os === "linux") {
      blockers.push({
        control: null,
        code: "worker_not_built",
        message: `${worker.message}.`,
        remedy: worker.remedy,
      });
    }
    return blockers;
  }
  const { build } = worker;
  if (build.os !== host.facts.os || build.arch !== host.facts.arch) {
    blockers.push({
      control: null,
      code: "worker_for_other_system",
      message: `The worker was built for ${build.os} ${build.arch}, this host is ${host.facts.os} ${host.facts.arch}.`,
      remedy: "build it here: `npm run build`",
    });
  }
  if (host.facts.os === "linux" && host.facts.bootId === "" && host.available) {
    blockers.push({
      control: null,
      code: "proc_unusable",
      message: "/proc/sys/kernel/random/boot_id cannot be read, so a plan could not be bound to this boot.",
      remedy: "mount procfs on /proc without hiding /proc/sys",
    });
  }
  return blockers;
}

function isolationBlockers(policy: SandboxPolicy, host: HostCapabilities): readonly Blocker[] {
  if (ISOLATION_LEVELS.indexOf(policy.isolation) <= ISOLATION_LEVELS.indexOf(host.isolation)) return [];
  return [
    {
      control: null,
      code: "isolation_unavailable",
      message: `The policy requires isolation "${policy.isolation}"; ${host.backend} offers at most "${host.isolation}".`,
      remedy: `require "${host.isolation}", or run flowcell itself inside a virtual machine`,
    },
  ];
}

/** What the policy asks the worker to be allowed. Workers are allowed nothing; the parent acts for them. */
function modeBlockers(policy: SandboxPolicy): readonly Blocker[] {
  const blockers: Blocker[] = [];
  if (policy.filesystem.mode !== "denied") {
    blockers.push({
      control: "filesystem_deny",
      code: "filesystem_mode_unsupported",
      message: `filesystem.mode "${policy.filesystem.mode}" is not possible: a worker has no files at all.`,
      remedy: 'use "denied", and grant files as host functions in the flow\'s manifest',
    });
  }
  if (policy.network.mode === "unrestricted") {
    blockers.push({
      control: "network_deny",
      code: "network_mode_unsupported",
      message: 'network.mode "unrestricted" is not possible: a worker has no network at all.',
      remedy: 'use "denied", and grant hosts in the flow\'s manifest',
    });
  }
  if (policy.environment.inherit || Object.keys(policy.environment.variables).length > 0) {
    blockers.push({
      control: "environment_empty",
      code: "environment_unsupported",
      message: "The policy gives the worker environment variables; a worker's environment is always empty.",
      remedy: "remove environment from the policy, and pass values as the script's input",
    });
  }
  if (policy.limits.processes !== 1) {
    blockers.push({
      control: "process_deny",
      code: "processes_unsupported",
      message: `The policy allows ${policy.limits.processes} processes per worker; a worker is always exactly one.`,
      remedy: "set limits.processes to 1",
    });
  }
  return blockers;
}

function allRequired(policy: SandboxPolicy): readonly RequiredControl[] {
  const required = requiredControls(policy);
  const named = new Set(required.map((one) => one.control));
  const added = ALWAYS_REQUIRED.filter((control) => !named.has(control));
  return [...required, ...added.map((control) => ({ control, because: `the ${LINUX_BACKEND} backend` }))];
}

/** The host's controls under this policy: where it requires Landlock, filtering calls alone is only part of it. */
function withPolicy(
  controls: readonly ControlStatus[],
  policy: SandboxPolicy,
  host: HostCapabilities,
): readonly ControlStatus[] {
  const { kernel } = host.facts;
  // A kernel without Landlock is what the operator may accept; one whose Landlock is withheld is something else.
  if (kernel.landlockAbi > 0 || (policy.landlock === "dangerOptional" && !kernel.landlockRefused))
    return controls;
  return controls.map((status) =>
    status.control === "filesystem_deny"
      ? { ...status, state: "partial", missing: "the second layer, Landlock" }
      : status,
  );
}

function controlBlockers(
  required: readonly RequiredControl[],
  controls: readonly ControlStatus[],
  host: HostCapabilities,
): readonly Blocker[] {
  const { facts } = host;
  return required.flatMap(({ control, because }): Blocker[] => {
    const status = controls.find((one) => one.control === control);
    if (status?.state === "enforced") return [];
    if (control === "filesystem_deny" && facts.kernel.landlockAbi === 0) return [landlockBlocker(host)];
    const partial = status?.state === "partial";
    return [
      {
        control,
        code: partial ? "control_partial" : "control_absent",
        message: `${control} is required by ${because} but ${partial ? "only partly held" : "absent"} here: ${status?.missing ?? "the backend does not know it"}.`,
        remedy: remedyFor(control),
      },
    ];
  });
}

function landlockBlocker(host: HostCapabilities): Blocker {
  const { kernel, kernelRelease } = host.facts;
  const why = kernel.landlockProblem === "" ? "" : ` (${kernel.landlockProblem})`;
  const blocker = { control: "filesystem_deny", code: "landlock_missing" } as const;
  if (kernel.landlockRefused) {
    return {
      ...blocker,
      message: `Landlock cannot be used by this process${why}.`,
      remedy: "let the filter or container around flowcell allow the landlock system calls",
    };
  }
  return {
    ...blocker,
    message: `This kernel (${kernelRelease}) has no Landlock${why}, which the policy requires.`,
    remedy:
      'use Linux 5.13 or newer with landlock among the security modules of its boot (lsm=), or set "dangerLandlockOptional": true in the operator\'s configuration',
  };
}

function remedyFor(control: Control): string {
  switch (control) {
    case "identity_dropped":
      return "run flowcell as root (its workers then run as nobody), or do not require identity_dropped";
    case "network_filter":
      return 'use network.mode "denied": workers have no network, granted hosts are reached by the parent';
    case "privacy_disclaim":
      return "do not require privacy_disclaim on this system";
    default:
      return "run flowcell doctor to see what this host lacks";
  }
}

/** The operating system's limits for a worker of this policy. They are back-stops: the engine and the parent are tighter. */
function planLimits(policy: SandboxPolicy, build: WorkerBuild): PlanLimits {
  const { limits } = policy;
  const { imageBytes, engineStackBytes } = build.memory;
  return {
    dataBytes: limits.heapBytes + imageBytes + engineStackBytes + WORKER_DATA_BYTES,
    // A second more per activation than it may use, so that the parent's own measurement always speaks first.
    cpuSeconds: Math.ceil((limits.activations * (limits.cpuMs + limits.replayCpuMs + 1_000)) / 1_000),
    stackBytes: MAIN_STACK_BYTES,
  };
}

/** A worker cannot have more than its parent may give. Less than planned would make honest scripts fail strangely. */
function limitBlockers(limits: PlanLimits, host: HostCapabilities): readonly Blocker[] {
  const { kernel } = host.facts;
  const rows: readonly (readonly [Control, string, number, number, string])[] = [
    ["memory_limit", "data size (RLIMIT_DATA)", limits.dataBytes, kernel.hardDataBytes, "ulimit -Hd"],
    ["memory_limit", "stack size (RLIMIT_STACK)", limits.stackBytes, kernel.hardStackBytes, "ulimit -Hs"],
    ["cpu_limit", "CPU time (RLIMIT_CPU)", limits.cpuSeconds, kernel.hardCpuSeconds, "ulimit -Ht"],
  ];
  return rows.flatMap(([control, what, wanted, hard, command]): Blocker[] =>
    hard === -1 || hard >= wanted
      ? []
      : [
          {
            control,
            code: "host_limit_too_low",
            message: `A worker of this policy needs a limit on ${what} of ${wanted}; this process may give at most ${hard}.`,
            remedy: `raise the hard limit (${command}, or Limit…= of the service), or lower the policy's limits`,
          },
        ],
  );
}

/** What a worker of this plan must say in its Welcome. Every field has exactly one right value on a given host. */
function expectedFacts(
  host: HostCapabilities,
  self: NonNullable<HostCapabilities["facts"]["self"]>,
  build: WorkerBuild,
  limits: PlanLimits,
): WelcomeFacts {
  const { kernel } = host.facts;
  const root = isRoot(self);
  const filter = build.seccomp[build.arch];
  return {
    protocol: protocolVersion,
    buildId: build.buildId,
    fingerprint: build.fingerprint,
    os: "linux",
    arch: build.arch,
    seccompSha256: filter.sha256,
    seccompLength: filter.length,
    seccompTsync: true,
    landlockAbi: Math.min(kernel.landlockAbi, build.landlockAbiMax),
    noNewPrivs: true,
    dumpable: false,
    mdwe: kernel.memoryDenyWriteExecute,
    threads: 1,
    uid: root ? NOBODY : self.uid[1],
    gid: root ? NOBODY : self.gid[1],
    groups: root ? 0 : self.groups.length,
    capEffective: NO_CAPABILITIES,
    capPermitted: NO_CAPABILITIES,
    capInheritable: NO_CAPABILITIES,
    capAmbient: NO_CAPABILITIES,
    limitCore: 0,
    limitData: limits.dataBytes,
    limitCpu: limits.cpuSeconds,
    limitStack: limits.stackBytes,
    limitNofile: 3,
    limitFsize: 0,
    limitNproc: 0,
    descriptors: 0b111,
    environmentCount: 0,
    ...speculationFacts(self),
  };
}

const NO_CAPABILITIES = "0".repeat(16);
