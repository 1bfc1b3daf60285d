// Acceptance of a worker: Welcome judged against the plan, then the kernel's word about it, then the confinement that
// every result of this worker carries. The one door between a launched process and the first byte of a script.
//
// Called by the pool with the header of the worker's first frame, and by doctor. TRUST: the header is a worker's; here
// it becomes facts (protocol), then accepted facts (welcome.ts), then facts the kernel does not contradict (observe.ts).
// Whoever gets `ok: false` kills the worker before sending anything; the refusal names the one fact that failed first.
import { ProtocolError, parseWelcome, type Untrusted, type WelcomeFacts } from "@flowcell/protocol";
import type { Control, ControlState } from "./controls.js";
import { type EvidenceLevel, judgeEvidence, judgeTier, type Tier } from "./evidence.js";
import { launchState } from "./launch.js";
import type { Layer } from "./linux-controls.js";
import { contradictions, OBSERVATION_RULES, type Observation, observeWorker } from "./observe.js";
import type { PlanState, SandboxPlan } from "./plan.js";
import { hostProc, type ProcReader } from "./proc-reader.js";
import { type FactRefusal, judgeWelcome } from "./welcome.js";

/** A mechanism that was live for one worker. */
export interface LiveLayer {
  readonly layer: Layer;
  readonly detail: string;
}

/** The confinement of one worker, as every result of it carries it. Plain JSON. */
export interface WorkerConfinement {
  readonly backend: string;
  readonly os: string;
  readonly arch: string;
  readonly isolation: "process";
  /** 1 best. Derived from the evidence for the required controls; a run by itself can show level 2 at most. */
  readonly tier: Tier;
  readonly layers: readonly LiveLayer[];
  readonly controls: Readonly<
    Record<string, { readonly state: ControlState; readonly evidence: EvidenceLevel }>
  >;
  /** What a reader should know: a weakening the operator chose, a look that this parent could not take. */
  readonly notes: readonly string[];
}

/** Why a worker is not used. `reason` is a reason of the outcome `sandbox_unavailable`. */
export interface WorkerRefusal {
  readonly reason: "welcome_refused" | "observation_failed";
  /** The fact or observation that failed first, such as `landlockAbi`; `form` for a Welcome that is none. */
  readonly fact: string;
  readonly controls: readonly Control[];
  readonly message: string;
  readonly remedy: string;
  /** All that failed, one sentence each. */
  readonly details: readonly string[];
}

/** A worker that may be sent a script, or one that must be killed. */
export type Acceptance = {
  /** What the worker claimed; null when its Welcome was malformed. */
  readonly claimed: WelcomeFacts | null;
  /** What the parent saw; empty when the Welcome was refused before that. */
  readonly observation: Observation;
} & (
  | { readonly ok: true; readonly confinement: WorkerConfinement }
  | { readonly ok: false; readonly refusal: WorkerRefusal }
);

/** Judges the first message of the worker `pid`. `header` is the text of its Welcome frame. */
export function acceptWorker(
  plan: SandboxPlan,
  pid: number,
  header: Untrusted<string>,
  proc: ProcReader = hostProc,
): Acceptance {
  const state = launchState(plan);
  let claimed: WelcomeFacts;
  try {
    claimed = parseWelcome(header);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return {
      ok: false,
      claimed: null,
      observation: [],
      refusal: {
        reason: "welcome_refused",
        fact: "form",
        controls: [],
        message: `the worker's Welcome is malformed: ${error.message}`,
        remedy: "use the parent and the worker of one build: `npm run build`, then restart the service",
        details: [error.message],
      },
    };
  }
  const refused = judgeWelcome(state.expected, claimed);
  const [firstFact] = refused;
  if (firstFact !== undefined) {
    return { ok: false, claimed, observation: [], refusal: refuseFacts(firstFact, refused) };
  }

  const observation = observeWorker(state, pid, proc);
  const against = contradictions(observation);
  const [first] = against;
  if (first !== undefined) {
    const details = against.map((row) =>
      row.state === "contradicts"
        ? `the kernel says ${row.name}: ${row.found}; the plan demands ${row.expected}, and the worker claimed so`
        : `${row.name} could not be observed: ${row.note}`,
    );
    return {
      ok: false,
      claimed,
      observation,
      refusal: {
        reason: "observation_failed",
        fact: first.name,
        controls: OBSERVATION_RULES[first.name].controls,
        message: details[0] ?? "",
        remedy: "run `flowcell doctor`; the worker was killed before it received anything",
        details,
      },
    };
  }
  return { ok: true, claimed, observation, confinement: confinementOf(state, observation) };
}

function refuseFacts(first: FactRefusal, all: readonly FactRefusal[]): WorkerRefusal {
  return {
    reason: "welcome_refused",
    fact: first.fact,
    controls: first.controls,
    message: first.message,
    remedy: first.remedy,
    details: all.map((one) => one.message),
  };
}

/** The layers live for a worker whose Welcome and observation were accepted: so its facts are the plan's. */
function liveLayers(plan: PlanState): readonly LiveLayer[] {
  const { expected, limits } = plan;
  const mebibytes = Math.round(limits.dataBytes / (1024 * 1024));
  const identity = `user ${expected.uid}, group ${expected.gid}, ${expected.groups} other groups, no capabilities`;
  return [
    { layer: "wasm", detail: `engine ${expected.fingerprint.slice(0, 12)} in its own linear memory` },
    {
      layer: "seccomp",
      detail: `${expected.seccompLength} instructions, ${expected.seccompSha256.slice(0, 12)}, kills the process`,
    },
    ...(expected.landlockAbi > 0
      ? [{ layer: "landlock" as const, detail: `ABI ${expected.landlockAbi}, nothing allowed` }]
      : []),
    { layer: "no_new_privs", detail: "on" },
    { layer: "non_dumpable", detail: "on" },
    ...(expected.mdwe ? [{ layer: "mdwe" as const, detail: "on" }] : []),
    { layer: "identity", detail: identity },
    {
      layer: "rlimit",
      detail: `${mebibytes} MiB of data, ${limits.cpuSeconds} s of CPU, no files, no processes`,
    },
    { layer: "launcher", detail: "three pipe ends, empty environment, own session" },
    { layer: "parent_death_signal", detail: "SIGKILL" },
  ];
}

/** Workers of one plan of which the same was seen have the same confinement, so one object serves all their results. */
const confinements = new WeakMap<PlanState, Map<string, WorkerConfinement>>();

function confinementOf(plan: PlanState, observation: Observation): WorkerConfinement {
  const seen = observation.map((row) => row.state).join();
  const known = confinements.get(plan) ?? new Map<string, WorkerConfinement>();
  confinements.set(plan, known);
  const confinement = known.get(seen) ?? makeConfinement(plan, observation);
  known.set(seen, confinement);
  return confinement;
}

function makeConfinement(plan: PlanState, observation: Observation): WorkerConfinement {
  const evidence = judgeEvidence({
    controls: plan.controls,
    welcomeAccepted: true,
    observation,
    probes: new Map(),
    broken: new Set(),
  });
  const notes = [
    ...(plan.policy.landlock === "dangerOptional" && plan.expected.landlockAbi === 0
      ? ["no Landlock: the kernel has none and the operator set dangerLandlockOptional"]
      : []),
    ...(plan.parent.canTrace
      ? ["the parent holds CAP_SYS_PTRACE, so it cannot test that others may not read the worker"]
      : []),
  ];
  return deepFreeze({
    backend: plan.backend,
    os: plan.os,
    arch: plan.build.arch,
    isolation: "process",
    tier: judgeTier(plan.required, evidence),
    layers: liveLayers(plan),
    controls: Object.fromEntries(
      plan.controls.map(({ control, state }) => [
        control,
        { state, evidence: evidence.find((one) => one.control === control)?.level ?? 0 },
      ]),
    ),
    notes,
  });
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) {
    if (typeof inner === "object" && inner !== null) deepFreeze(inner);
  }
  return Object.freeze(value);
}
