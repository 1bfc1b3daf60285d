/**
 * The supervisor of workers: `createPool` from a sandbox plan. What the command line, codemode and the bench use.
 */
import type { SandboxPlan, WorkerConfinement } from "@flowcell/sandbox";
import { Pool } from "./pool.js";
import type { PoolOptions } from "./pool-options.js";
import { systemBackend } from "./system-backend.js";

export type { ProcessExit, WorkerBackend, WorkerProcess } from "./backend.js";
export type { FlowDeaths } from "./counters.js";
export { Pool } from "./pool.js";
export type { PoolEvent, PoolHealth, PoolOptions } from "./pool-options.js";
export type {
  ActivationDriver,
  ActivationError,
  ActivationRequest,
  ActivationResult,
  CallRecord,
  CallState,
  ConsoleLine,
  DrivenActivation,
  DrivenCall,
  HostCall,
  Usage,
} from "./types.js";
export type { Refusal } from "./worker.js";

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
