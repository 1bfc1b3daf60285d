/** Makes a pool of confined processes from a sandbox plan. */
import type { SandboxPlan, WorkerConfinement } from "@flowcell/sandbox";
import { Pool } from "./pool.js";
import type { PoolOptions } from "./pool-options.js";
import { systemBackend } from "./system-backend.js";

export interface CreatePoolOptions extends PoolOptions {
  /** What confines every worker of the pool; `compile` of packages/sandbox makes it. */
  readonly plan: SandboxPlan;
  /** Another launcher library than this clone's. */
  readonly launcherPath?: string;
}

/** A pool that starts its spares at once. Throws PlanError for what is no plan and RangeError for a wrong option. */
export function createPool(options: CreatePoolOptions): Pool<WorkerConfinement> {
  const { plan, launcherPath, ...pool } = options;
  return new Pool(systemBackend(plan, launcherPath), pool);
}
