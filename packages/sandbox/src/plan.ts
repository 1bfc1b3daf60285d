// SandboxPlan: the only thing from which a worker is launched and against which its Welcome is judged.
//
// Made by the compiler alone (compile.ts). Used by the launch, the Welcome verification and the observation, each of
// which calls `requirePlan` first. A plan is evidence that four gates were passed in this process on this boot of this
// host; it is no token that could be written down, sent or rebuilt. So its state lives in a table of this module, not
// in the object: a copy, a proxy, a look-alike, or a plan of another copy of this module finds nothing there.
// Kept true: what `requirePlan` returns was compiled in this process, for this boot and this identity, in this format.
import type { WelcomeFacts } from "@flowcell/protocol";
import type { WorkerBuild } from "./build.js";
import type { ControlStatus } from "./linux-controls.js";
import type { RequiredControl, SandboxPolicy } from "./policy.js";

/** Changes whenever the meaning of a plan's state changes. */
export const PLAN_FORMAT = 1;

/** The limits that the launcher sets before the worker is executed. */
export interface PlanLimits {
  readonly dataBytes: number;
  readonly cpuSeconds: number;
  readonly stackBytes: number;
}

/** What a plan holds. Plain data; only `requirePlan` hands it out. */
export interface PlanState {
  readonly format: number;
  readonly backend: string;
  readonly os: "linux";
  readonly kernelRelease: string;
  readonly bootId: string;
  readonly policy: SandboxPolicy;
  readonly required: readonly RequiredControl[];
  readonly controls: readonly ControlStatus[];
  readonly build: WorkerBuild;
  readonly workerPath: string;
  readonly args: readonly string[];
  readonly limits: PlanLimits;
  /** What Welcome must say, field by field. */
  readonly expected: WelcomeFacts;
  /** The parent as the plan was made, for what workers inherit from it. */
  readonly parent: {
    readonly pid: number;
    /** See `identityOf`. */
    readonly identity: string;
    readonly groups: readonly number[];
    readonly seccompFilters: number;
    readonly canTrace: boolean;
    readonly storeBypass: string | undefined;
    readonly indirectBranch: string | undefined;
  };
}

/** Why a value is not accepted as a plan. */
export type PlanErrorReason =
  | "not_a_plan"
  | "other_backend"
  | "other_boot"
  | "other_format"
  | "other_identity";

/** A value was used as a plan that is none for this process. A mistake of the calling program, never of a script. */
export class PlanError extends Error {
  override readonly name = "PlanError";
  readonly reason: PlanErrorReason;
  constructor(reason: PlanErrorReason, message: string) {
    super(`sandbox_unavailable: ${message}`);
    this.reason = reason;
  }
}

const states = new WeakMap<object, PlanState>();

/** Only this module has it, so only `makePlan` can construct a plan. */
const maker = Symbol("maker");

/** An opaque, process-local permit to launch confined workers. See `describePlan` for what it holds. */
export class SandboxPlan {
  // Present so that the type is nominal: no object literal is assignable to it.
  readonly #sealed = true;

  constructor(key: symbol) {
    if (key !== maker) throw new PlanError("not_a_plan", "plans are made by compile() only.");
    Object.freeze(this);
  }

  /** Plans cannot be written down: what they stand for ends with this process. */
  toJSON(): never {
    throw new PlanError("not_a_plan", "a plan cannot be serialised; store the policy and compile it again.");
  }

  /** For assertions and debuggers. */
  get [Symbol.toStringTag](): string {
    return this.#sealed ? "SandboxPlan" : "";
  }
}

/** Makes a plan. Called by the compiler, after its four gates. */
export function makePlan(state: PlanState): SandboxPlan {
  const plan = new SandboxPlan(maker);
  states.set(plan, deepFreeze(state));
  return plan;
}

/** What a plan must be for: the backend, this boot, and the identity under which this process runs now. */
export interface PlanUse {
  readonly backend: string;
  readonly bootId: string;
  readonly identity: string;
}

/** User and group of a parent in one word. */
export function identityOf(uid: number, gid: number): string {
  return `${uid}:${gid}`;
}

/** The state of a genuine plan; throws a PlanError for anything else. */
export function requirePlan(value: unknown, use: PlanUse): PlanState {
  const state = typeof value === "object" && value !== null ? states.get(value) : undefined;
  if (state === undefined) {
    throw new PlanError("not_a_plan", "this is no plan of this process; compile the policy here and now.");
  }
  if (state.format !== PLAN_FORMAT) {
    throw new PlanError(
      "other_format",
      `the plan has format ${state.format}, this build uses ${PLAN_FORMAT}.`,
    );
  }
  if (state.backend !== use.backend) {
    throw new PlanError("other_backend", `the plan is for ${state.backend}, not for ${use.backend}.`);
  }
  if (state.bootId !== use.bootId || state.bootId === "") {
    throw new PlanError(
      "other_boot",
      "the plan was made on another boot of this host; compile the policy again.",
    );
  }
  if (state.parent.identity !== use.identity) {
    throw new PlanError(
      "other_identity",
      `the plan was made as ${state.parent.identity}, this process is now ${use.identity}; compile after changing identity.`,
    );
  }
  return state;
}

/** What a plan holds, for people and reports. It is a description: it launches nothing. */
export interface PlanDescription {
  readonly backend: string;
  readonly os: string;
  readonly arch: string;
  readonly kernelRelease: string;
  readonly isolation: string;
  readonly landlock: SandboxPolicy["landlock"];
  readonly landlockAbi: number;
  readonly buildId: string;
  readonly fingerprint: string;
  readonly limits: PlanLimits;
  readonly required: readonly RequiredControl[];
  readonly controls: readonly ControlStatus[];
}

/** Describes a plan's state. */
export function describePlanState(state: PlanState): PlanDescription {
  return {
    backend: state.backend,
    os: state.os,
    arch: state.build.arch,
    kernelRelease: state.kernelRelease,
    isolation: "process",
    landlock: state.policy.landlock,
    landlockAbi: state.expected.landlockAbi,
    buildId: state.build.buildId,
    fingerprint: state.build.fingerprint,
    limits: state.limits,
    required: state.required,
    controls: state.controls,
  };
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) {
    if (typeof inner === "object" && inner !== null && !Object.isFrozen(inner)) deepFreeze(inner);
  }
  return Object.freeze(value);
}
