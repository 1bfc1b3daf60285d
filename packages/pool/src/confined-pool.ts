/**
 * From what an embedding program asks for (limits, ceilings, a policy) to a pool of workers that are confined so. The library
 * and codemode each hold one; it opens when it is first needed.
 *
 * Kept true: no run is promised more than its worker is confined to; a host that cannot confine gives no pool and says every
 * reason; it is asked again by the next run, since it may have been repaired.
 */
import { type Limits, limitCeilings, type ProfileName, parseLimits, profileLimits } from "@flowcell/protocol";
import {
  type Blocker,
  defaultPolicy,
  formatProblem,
  type PreparedPlan,
  parsePolicy,
  preparePlan,
  type SandboxPlan,
  type SandboxPolicy,
  type WorkerConfinement,
} from "@flowcell/sandbox";
import type { Pool } from "./pool.js";
import type { PoolHealth, PoolOptions } from "./pool-options.js";
import { createPool } from "./system-pool.js";
import type { ActivationRequest, ActivationResult } from "./types.js";

export interface ConfinementRequest {
  readonly profile: ProfileName;
  /** Over those of the profile. */
  readonly limits?: unknown;
  /** The most that a run may ask for; `ceilingDefaults` where it says nothing. */
  readonly ceilings?: unknown;
  /** The format that `flowcell doctor --json` prints; the default requires all that this system can give. */
  readonly policy?: unknown;
}

export type ConfinementResult =
  | {
      readonly ok: true;
      /** Of runs that ask for nothing. A ceiling below a default lowers the default. */
      readonly limits: Limits;
      readonly ceilings: Limits;
      readonly policy: SandboxPolicy;
    }
  | { readonly ok: false; readonly message: string };

const MiB = 1024 * 1024;

/** Ceilings that nobody set, for the two limits whose ceiling the confinement of every worker is sized by. */
export const ceilingDefaults: Pick<Limits, "heapBytes" | "cpuMs"> = { heapBytes: 256 * MiB, cpuMs: 60_000 };

export function resolveConfinement(request: ConfinementRequest): ConfinementResult {
  const { profile } = request;
  const asked = parseLimits(request.limits, profileLimits(profile), limitCeilings);
  if (!asked.ok) return { ok: false, message: `limits: ${asked.message}` };
  const raised: Limits = {
    ...limitCeilings,
    heapBytes: Math.max(asked.limits.heapBytes, ceilingDefaults.heapBytes),
    cpuMs: Math.max(asked.limits.cpuMs, ceilingDefaults.cpuMs),
  };
  const parsedCeilings = parseLimits(request.ceilings, raised, limitCeilings);
  if (!parsedCeilings.ok) return { ok: false, message: `ceilings: ${parsedCeilings.message}` };
  const { limits: most } = parsedCeilings;
  const { heapBytes, cpuMs } = most;
  let policy = defaultPolicy(profile, { limits: { heapBytes, cpuMs } });
  let ceilings = most;
  if (request.policy !== undefined) {
    const parsed = parsePolicy(request.policy);
    if (!parsed.ok) return { ok: false, message: `policy: ${parsed.problems.map(formatProblem).join("; ")}` };
    policy = parsed.policy;
    // Workers are confined for the policy's figures; no run may be promised more.
    ceilings = {
      ...most,
      heapBytes: Math.min(heapBytes, policy.limits.heapBytes),
      cpuMs: Math.min(cpuMs, policy.limits.cpuMs),
    };
  }
  const held = parseLimits({}, asked.limits, ceilings);
  if (!held.ok) return { ok: false, message: `limits: ${held.message}` };
  return { ok: true, limits: held.limits, ceilings, policy };
}

/** Why there is no pool, as it stands in a result of status sandbox_unavailable. */
export interface PoolFailure {
  readonly code: "blocked";
  readonly message: string;
  readonly fact?: string;
  readonly remedy: string;
}

/** What runs need of a pool. */
export interface ActivationPool {
  activate(request: ActivationRequest): Promise<ActivationResult<WorkerConfinement>>;
  health(): PoolHealth;
  close(): Promise<void>;
}

export type OpenedPool<P extends ActivationPool = Pool<WorkerConfinement>> =
  | { readonly ok: true; readonly pool: P }
  | { readonly ok: false; readonly failure: PoolFailure };

/** Where the command line's trace looks on, and where tests put something else. */
export interface ConfinedPoolParts {
  readonly prepare?: (policy: SandboxPolicy) => PreparedPlan;
  readonly create?: (plan: SandboxPlan, options: PoolOptions) => ActivationPool;
}

export class ConfinedPool {
  readonly #policy: SandboxPolicy;
  readonly #options: PoolOptions;
  readonly #parts: ConfinedPoolParts;
  #opened: OpenedPool<ActivationPool> | undefined;
  #closed = false;

  constructor(policy: SandboxPolicy, options: PoolOptions, parts: ConfinedPoolParts = {}) {
    this.#policy = policy;
    this.#options = options;
    this.#parts = parts;
  }

  open(): OpenedPool<ActivationPool> {
    if (this.#closed) return closedPool;
    if (this.#opened?.ok === true) return this.#opened;
    const { result } = (this.#parts.prepare ?? preparePlan)(this.#policy);
    this.#opened = result.ok
      ? { ok: true, pool: (this.#parts.create ?? createConfined)(result.plan, this.#options) }
      : { ok: false, failure: blocked(result.failure.blockers) };
    return this.#opened;
  }

  /** Null before it was opened. */
  health(): PoolHealth | null {
    return this.#opened?.ok === true ? this.#opened.pool.health() : null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#opened?.ok === true) await this.#opened.pool.close();
  }
}

export function createConfined(plan: SandboxPlan, options: PoolOptions): Pool<WorkerConfinement> {
  return createPool({ plan, ...options });
}

const closedPool: OpenedPool<ActivationPool> = {
  ok: false,
  failure: { code: "blocked", message: "the pool is closed", remedy: "create another one" },
};

/** Every blocker in one text, with each remedy once. */
function blocked(blockers: readonly Blocker[]): PoolFailure {
  const message = blockers.map((blocker) => blocker.message).join(" ");
  const remedy = [...new Set(blockers.map((blocker) => blocker.remedy))].join("; ");
  return { code: "blocked", message, fact: blockers.map(({ code }) => code).join(", "), remedy };
}
