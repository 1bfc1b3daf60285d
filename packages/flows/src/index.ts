/** Runs of flows: the state machine, the engine that drives it, what is installed and when it runs. */

export { type FlowFolder, flowLimits, readFlowFolder } from "./catalog/flow-folder.js";
export { grantedFunctions } from "./catalog/functions.js";
export { reachOf } from "./catalog/reach.js";
export { errorMapper } from "./catalog/run-error.js";
export { createRunner, type RunnerOptions } from "./engine/index.js";
export { type CommitObserver, observedStore } from "./observed-store.js";
export {
  type CallReport,
  type CellPool,
  type CellRequest,
  type CellResult,
  type DryRun,
  type FlowReport,
  type FlowService,
  type FlowServiceOptions,
  type Gate,
  OperationError,
  type PendingReport,
  type Reach,
  type ReachDifference,
  type ReplayReport,
  type RunErrorData,
  type Runnable,
  type Runner,
  type RunnerHooks,
  type RunReport,
  type VersionReport,
} from "./ports.js";
export { createFlowService } from "./service.js";
export { runReport } from "./service-report.js";
