/**
 * The supervisor of workers: `createPool` from a sandbox plan. What the command line, codemode and the bench use.
 */

export type { ProcessExit, WorkerBackend, WorkerProcess } from "./backend.js";
export {
  type ActivationPool,
  ConfinedPool,
  type ConfinedPoolParts,
  type ConfinementRequest,
  type ConfinementResult,
  ceilingDefaults,
  createConfined,
  type OpenedPool,
  type PoolFailure,
  resolveConfinement,
} from "./confined-pool.js";
export type { FlowDeaths } from "./counters.js";
export { Pool } from "./pool.js";
export type { PoolEvent, PoolHealth, PoolOptions } from "./pool-options.js";
export { freshBytes } from "./random.js";
export { type CreatePoolOptions, createPool } from "./system-pool.js";
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
