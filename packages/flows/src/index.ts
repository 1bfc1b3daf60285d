/** Runs of flows: the state machine, the engine that drives it, what is installed and when it runs. */

export {
  type CallReport,
  type CellPool,
  type CellRequest,
  type CellResult,
  type DryRun,
  type FlowReport,
  type FlowService,
  type FlowServiceOptions,
  OperationError,
  type PendingReport,
  type Reach,
  type ReplayReport,
  type RunErrorData,
  type RunReport,
  type VersionReport,
} from "./ports.js";
