// doctor: what this host offers, what a worker of it attests, what the parent sees, which escapes are refused here and
// now, and how much each of that proves. Pure data; doctor-text.ts prints it.
//
// Called by `flowcell doctor`. It starts processes (one worker, two per escape probe, a few for the live checks) and
// ends all of them; it changes nothing else. It never throws for what it finds: a finding is a row or a problem.
// Kept true: a control is reported as enforced only if a plan holds it, and a level only from evidence of this call.
import { nativePaths } from "@flowcell/native";
import {
  FrameDecoder,
  ProtocolError,
  type Untrusted,
  type WelcomeFacts,
  type WelcomeFieldName,
} from "@flowcell/protocol";
import { acceptWorker, type WorkerConfinement, type WorkerRefusal } from "./accept.js";
import { type Blocker, formatBlocker } from "./blocker.js";
import { type WorkerBuildResult, workerDigestMatches } from "./build.js";
import { Child, endOf } from "./child.js";
import type { CompileResult, Gate } from "./compile.js";
import { CONTROL_ROWS, CONTROLS, type Control, type ControlState } from "./controls.js";
import {
  differingFact,
  listActs,
  type ProbeResult,
  type ProbeSetup,
  probeFacts,
  runActs,
} from "./escape-probes.js";
import { type EvidenceLevel, judgeEvidence, judgeTier, type Tier, UNIT_TESTS } from "./evidence.js";
import { explainStart, type StartFailure } from "./exits.js";
import { describePlan, launchPlanned, launchState } from "./launch.js";
import type { Layer } from "./linux-controls.js";
import { checkEnvironment, checkParentDeath, type LiveCheck } from "./live-checks.js";
import type { Observation } from "./observe.js";
import type { PlanDescription, SandboxPlan } from "./plan.js";
import { defaultPolicy } from "./policy.js";
import { type PrepareOptions, preparePlan } from "./prepare.js";
import type { HostCapabilities } from "./probe.js";
import { FACT_NAMES, FACT_ROWS } from "./welcome.js";

/** What doctor looks at. */
export interface DoctorOptions extends PrepareOptions {
  /** The operator's policy as data; the default policy for flows when not given. */
  readonly policy?: unknown;
  /** Absolute path of the probe binary, when not in this clone. */
  readonly probePath?: string | undefined;
  /** Whether to try the escape probes and live checks; true by default, some seconds. */
  readonly probes?: boolean | undefined;
}

/** One property of this host. */
export interface HostRow {
  readonly name: string;
  readonly value: string;
  readonly meaning: string;
}

/** One fact of the worker's Welcome beside what the plan demands. */
export interface FactReport {
  readonly fact: WelcomeFieldName;
  readonly claimed: string;
  readonly demanded: string;
  readonly agrees: boolean;
  readonly rule: string;
}

/** The worker that doctor started. */
export interface WorkerReport {
  readonly accepted: boolean;
  readonly confinement: WorkerConfinement | null;
  readonly refusal: WorkerRefusal | null;
  readonly startFailure: StartFailure | null;
  readonly facts: readonly FactReport[];
  readonly observation: Observation;
  /** Milliseconds from launch to Welcome, and of the judgement with its observation. */
  readonly welcomeMs: number | null;
  readonly judgedMs: number | null;
  /** How it ended when its input was closed: a worker without work ends with `exit 0`. */
  readonly end: string;
}

/** One control with everything that speaks for it. */
export interface ControlReport {
  readonly control: Control;
  readonly title: string;
  readonly required: boolean;
  readonly state: ControlState;
  readonly layers: readonly Layer[];
  readonly missing: string;
  readonly level: EvidenceLevel;
  readonly attested: readonly string[];
  readonly observed: readonly string[];
  readonly setByParent: string;
  /** Escapes refused here that succeed unconfined, by name; and live checks. */
  readonly probes: readonly string[];
  readonly unitTests: readonly string[];
  readonly doesNotProve: string;
}

/** The whole report. Plain JSON. */
export interface DoctorReport {
  readonly version: 1;
  /** No problem was found. */
  readonly ok: boolean;
  readonly problems: readonly string[];
  readonly backend: string;
  readonly host: readonly HostRow[];
  readonly build: { readonly ok: boolean; readonly text: string; readonly digestMatches: boolean | null };
  readonly plan: PlanDescription | null;
  readonly gate: Gate | null;
  readonly blockers: readonly Blocker[];
  readonly worker: WorkerReport | null;
  readonly probes: readonly ProbeResult[];
  readonly live: readonly LiveCheck[];
  readonly controls: readonly ControlReport[];
  readonly tier: Tier;
  readonly tierText: string;
  /** What no row of this report proves. */
  readonly doesNotProve: readonly string[];
}

const WELCOME_MS = 5_000;
const END_MS = 5_000;
const OUTPUT_MAX = 16 * 1024;

/** Said under every report. */
const NEVER_PROVEN: readonly string[] = [
  "The kernel itself is trusted: a bug in it, or in the processor, is outside all of this.",
  "The probes are a program of their own that links the worker's confinement code and attests the same facts; the worker itself is never asked to escape.",
  "A worker's claims that the kernel shows to nobody (Landlock, memory-deny-write-execute) rest on its build and on the probes.",
  "Nothing here says what host functions allow: that is the manifest's part and the approval's.",
];

/** Examines this host. */
export async function runDoctor(options: DoctorOptions = {}): Promise<DoctorReport> {
  const problems: string[] = [];
  const { result, host, worker: build } = preparePlan(options.policy ?? defaultPolicy("flow"), options);
  const digestMatches = checkDigest(build, problems);
  if (!result.ok) problems.push(...result.failure.blockers.map(formatBlocker));
  const plan = result.ok ? result.plan : null;
  const worker = plan === null ? null : await examineWorker(plan, options.launcherPath, problems);
  const wanted = options.probes !== false;
  const probes = wanted && plan !== null ? await tryEscapes(plan, options, problems) : [];
  const live =
    wanted && plan !== null && worker?.accepted === true
      ? await tryLive(plan, worker.observation, problems)
      : [];
  return assemble({ result, host, build, digestMatches, worker, probes, live, problems });
}

/** What a report is made of; separate from finding it out, so that a report can be made of any findings. */
export interface Findings {
  readonly result: CompileResult;
  readonly host: HostCapabilities;
  readonly build: WorkerBuildResult;
  readonly digestMatches: boolean | null;
  readonly worker: WorkerReport | null;
  readonly probes: readonly ProbeResult[];
  readonly live: readonly LiveCheck[];
  readonly problems: readonly string[];
}

/** Makes the report of findings. */
export function assemble(findings: Findings): DoctorReport {
  const { result, host, build, worker, probes, live } = findings;
  const plan = result.ok ? describePlan(result.plan) : null;
  const failure = result.ok ? null : result.failure;
  const controls = plan?.controls ?? withoutPlan(host);
  const evidence = judgeEvidence({
    controls,
    welcomeAccepted: worker?.accepted === true,
    observation: worker?.observation ?? [],
    probes: provenBy(probes, live),
    broken: brokenBy(probes, live),
  });
  const tier = judgeTier(plan?.required ?? [], evidence);
  const required = new Set((plan?.required ?? []).map((one) => one.control));
  const reports = CONTROLS.map((control): ControlReport => {
    const status = controls.find((one) => one.control === control);
    const proof = evidence.find((one) => one.control === control);
    return {
      control,
      title: CONTROL_ROWS[control].title,
      required: required.has(control),
      state: status?.state ?? "absent",
      layers: status?.layers ?? [],
      missing: status?.missing ?? "",
      level: proof?.level ?? 0,
      attested: proof?.attested ?? [],
      observed: proof?.observed ?? [],
      setByParent: proof?.setByParent ?? "",
      probes: proof?.probes ?? [],
      unitTests: UNIT_TESTS[control],
      doesNotProve: CONTROL_ROWS[control].doesNotProve,
    };
  });
  return {
    version: 1,
    ok: findings.problems.length === 0,
    problems: findings.problems,
    backend: host.backend,
    host: hostRows(host),
    build: {
      ok: build.ok,
      text: build.ok
        ? `build ${build.build.buildId.slice(0, 16)} for ${build.build.os} ${build.build.arch}`
        : build.message,
      digestMatches: findings.digestMatches,
    },
    plan,
    gate: failure?.gate ?? null,
    blockers: failure?.blockers ?? [],
    worker,
    probes,
    live,
    controls: reports,
    tier,
    tierText: tierText(tier, reports, plan !== null),
    doesNotProve: NEVER_PROVEN,
  };
}

/** Without a plan nothing is held, whatever the host could do. */
function withoutPlan(host: HostCapabilities): PlanDescription["controls"] {
  return host.controls.map((status) => ({
    control: status.control,
    state: "absent",
    layers: [],
    missing: status.state === "absent" ? status.missing : "there is no plan, so no worker starts",
  }));
}

function provenBy(
  probes: readonly ProbeResult[],
  live: readonly LiveCheck[],
): ReadonlyMap<Control, readonly string[]> {
  const proven = new Map<Control, readonly string[]>();
  for (const control of CONTROLS) {
    const names = [
      ...probes
        .filter((probe) => probe.proves === control && probe.verdict === "refused")
        .map((probe) => probe.name),
      ...live
        .filter((check) => check.control === control && check.state === "shown")
        .map((check) => check.name),
    ];
    if (names.length > 0) proven.set(control, names);
  }
  return proven;
}

/** Controls that were seen to fail. An act that a worker must be able to do and could not is no such failure. */
function brokenBy(probes: readonly ProbeResult[], live: readonly LiveCheck[]): ReadonlySet<Control> {
  const escaped = new Set(probes.filter((probe) => probe.verdict === "escaped").map((probe) => probe.proves));
  const failed = new Set<string>(
    live.filter((check) => check.state === "failed").map((check) => check.control),
  );
  return new Set(CONTROLS.filter((control) => escaped.has(control) || failed.has(control)));
}

function tierText(tier: Tier, controls: readonly ControlReport[], hasPlan: boolean): string {
  if (!hasPlan) return "tier 3: there is no plan; flowcell runs nothing on this host as it is";
  if (tier === 1) return "tier 1: every required control was shown live on this host, with its control";
  const below = controls
    .filter((one) => one.required && one.level < (tier === 2 ? 3 : 2))
    .map((one) => `${one.control} (level ${one.level})`);
  const short =
    below.length > 4 ? `${below.slice(0, 4).join(", ")} and ${below.length - 4} more` : below.join(", ");
  if (tier === 2)
    return `tier 2: every required control is attested, and seen or set by the parent; not shown live: ${short}`;
  return `tier 3: not attested, or neither seen nor set by the parent: ${short}`;
}

function checkDigest(build: WorkerBuildResult, problems: string[]): boolean | null {
  if (!build.ok) return null;
  try {
    if (workerDigestMatches(build.build, build.workerPath)) return true;
    problems.push(
      "The worker binary is not the one that was built. Run `npm run build`; find out who changed it.",
    );
  } catch (error) {
    problems.push(
      `The worker binary cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
  return false;
}

/** The header of the Welcome in what a worker has written: undefined when it is not there yet. */
function welcomeIn(output: Buffer): Untrusted<string> | undefined {
  const decoder = new FrameDecoder({ sender: "worker" });
  decoder.push(Buffer.from(output));
  return decoder.next()?.header;
}

const NO_WORKER: WorkerReport = {
  accepted: false,
  confinement: null,
  refusal: null,
  startFailure: null,
  facts: [],
  observation: [],
  welcomeMs: null,
  judgedMs: null,
  end: "not started",
};

async function examineWorker(
  plan: SandboxPlan,
  launcherPath: string | undefined,
  problems: string[],
): Promise<WorkerReport> {
  const began = performance.now();
  let child: Child;
  try {
    child = new Child(launchPlanned(plan, launcherPath), OUTPUT_MAX);
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    return NO_WORKER;
  }
  let header: Untrusted<string> | undefined;
  let malformed = "";
  try {
    await child.until((output) => {
      header = welcomeIn(output);
      return header !== undefined;
    }, WELCOME_MS);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    malformed = error.message;
  }
  const welcomeMs = performance.now() - began;
  if (header === undefined) return refuseToStart(child, malformed, problems);

  const judging = performance.now();
  const acceptance = acceptWorker(plan, child.worker.pid, header);
  const judgedMs = performance.now() - judging;
  child.closeInput();
  const end = endOf((await child.finish(END_MS)).exit);
  if (!acceptance.ok) {
    problems.push(
      `The worker was refused: ${acceptance.refusal.message}. ${upper(acceptance.refusal.remedy)}.`,
    );
  } else if (end !== "exit 0") {
    problems.push(
      `A worker without work ends with exit 0 when its input is closed; this one ended with ${end}.`,
    );
  }
  return {
    accepted: acceptance.ok,
    confinement: acceptance.ok ? acceptance.confinement : null,
    refusal: acceptance.ok ? null : acceptance.refusal,
    startFailure: null,
    facts: compareFacts(plan, acceptance.claimed),
    observation: acceptance.observation,
    welcomeMs,
    judgedMs,
    end,
  };
}

async function refuseToStart(child: Child, malformed: string, problems: string[]): Promise<WorkerReport> {
  const ended = child.worker.reap();
  child.worker.kill();
  const { exit } = await child.finish(END_MS);
  const failure: StartFailure =
    ended !== null && malformed === ""
      ? explainStart(ended)
      : {
          reason: "start_failed",
          step: "welcome",
          message:
            malformed === ""
              ? `the worker said no Welcome within ${WELCOME_MS} ms`
              : `no Welcome: ${malformed}`,
          remedy: "rebuild the native parts with `npm run build`; if it stays, report it",
        };
  problems.push(`The worker did not start: ${failure.message}. ${upper(failure.remedy)}.`);
  return { ...NO_WORKER, startFailure: failure, end: endOf(exit) };
}

function compareFacts(plan: SandboxPlan, claimed: WelcomeFacts | null): readonly FactReport[] {
  const { expected } = launchState(plan);
  if (claimed === null) return [];
  return FACT_NAMES.map((fact) => ({
    fact,
    claimed: String(claimed[fact]),
    demanded: String(expected[fact]),
    agrees: Object.is(claimed[fact], expected[fact]),
    rule: FACT_ROWS[fact].rule,
  }));
}

async function tryEscapes(
  plan: SandboxPlan,
  options: DoctorOptions,
  problems: string[],
): Promise<readonly ProbeResult[]> {
  try {
    const setup: ProbeSetup = {
      probePath: options.probePath ?? nativePaths(options.buildFolder).probe,
      launcherPath: options.launcherPath,
    };
    const differs = differingFact(await probeFacts(setup), launchState(plan).expected);
    if (differs !== undefined) {
      problems.push(
        `The probe confines itself in another way than a worker (${differs}), so its attempts would prove nothing. Run \`npm run build\`.`,
      );
      return [];
    }
    const results = await runActs(setup, await listActs(setup));
    for (const one of results) {
      if (one.verdict !== "escaped") continue;
      problems.push(
        `Escape probe ${one.name} (${one.proves}) was not refused: ${one.worker.outcome} instead of ${one.confined}. Do not run untrusted scripts on this host; report it.`,
      );
    }
    // An act that comes out differently unconfined proves nothing; a probe that cannot confine itself proves too much.
    const idle = results.filter((one) => one.verdict === "inconclusive" && !one.worker.ready);
    const [first] = idle;
    if (first !== undefined) {
      problems.push(
        `${idle.length} escape probes did not come to their confined attempt, the first: ${first.name} (${first.worker.outcome}). See --json for all.`,
      );
    }
    return results;
  } catch (error) {
    problems.push(
      `The escape probes cannot be run: ${error instanceof Error ? error.message : String(error)}`,
    );
    return [];
  }
}

async function tryLive(
  plan: SandboxPlan,
  observation: Observation,
  problems: string[],
): Promise<readonly LiveCheck[]> {
  const { workerPath, args } = launchState(plan);
  const checks = [await checkParentDeath(workerPath, args), await checkEnvironment(observation)];
  for (const check of checks) {
    if (check.state === "failed")
      problems.push(`Live check ${check.name} failed: the worker is ${check.worker}.`);
  }
  return checks;
}

function upper(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function limit(value: number, unit: string): string {
  return value === -1 ? "none" : `${value}${unit}`;
}

function hostRows(host: HostCapabilities): readonly HostRow[] {
  const { facts } = host;
  const rows: HostRow[] = [
    {
      name: "system",
      value: `${facts.os} ${facts.arch}, kernel ${facts.kernelRelease}`,
      meaning: "what runs here",
    },
  ];
  if (facts.os !== "linux") return rows;
  const { kernel, self } = facts;
  const yes = (value: boolean): string => (value ? "yes" : "no");
  rows.push(
    {
      name: "seccomp",
      value: `filters ${yes(kernel.seccompFilter)}, all threads ${yes(kernel.seccompThreadSync)}, kill process ${yes(kernel.seccompKillProcess)}`,
      meaning: "the boundary; all three are needed",
    },
    {
      name: "landlock",
      value: kernel.landlockAbi > 0 ? `ABI ${kernel.landlockAbi}` : `absent: ${kernel.landlockProblem}`,
      meaning: "the second layer",
    },
    {
      name: "mdwe",
      value: yes(kernel.memoryDenyWriteExecute),
      meaning: "memory-deny-write-execute, used where present",
    },
    {
      name: "close_range",
      value: yes(kernel.closeRange),
      meaning: "closes what a parent might leak; needed",
    },
    {
      name: "yama",
      value: facts.yamaPtraceScope === null ? "absent" : `ptrace scope ${facts.yamaPtraceScope}`,
      meaning: "not relied on: workers are not dumpable",
    },
    {
      name: "hard limits",
      value: `data ${limit(kernel.hardDataBytes, " bytes")}, CPU ${limit(kernel.hardCpuSeconds, " s")}, stack ${limit(kernel.hardStackBytes, " bytes")}`,
      meaning: "the most that a worker can be given",
    },
  );
  if (self === null) return rows;
  rows.push(
    {
      name: "this process",
      value: `user ${self.uid[1]}, group ${self.gid[1]}, ${self.groups.length} groups`,
      meaning:
        self.uid[0] === 0
          ? "workers run as nobody (65534)"
          : "workers keep this identity, without capabilities",
    },
    {
      name: "CAP_SYS_PTRACE",
      value: yes(self.canTrace),
      meaning: self.canTrace
        ? "can read workers, so cannot test that others cannot"
        : "workers must be closed to this process",
    },
    {
      name: "own filters",
      value: String(self.seccompFilters),
      meaning: "seccomp filters that workers inherit from this process",
    },
    {
      name: "speculation",
      value: `store bypass: ${self.storeBypass ?? "not told"}; indirect branches: ${self.indirectBranch ?? "not told"}`,
      meaning: "workers switch off what a thread may switch off",
    },
  );
  return rows;
}
