// Policy → plan → confined worker: what the pool, the command line and embedders use of this package.

export {
  type Acceptance,
  acceptWorker,
  type LiveLayer,
  type WorkerConfinement,
  type WorkerRefusal,
} from "./accept.js";
export { BLOCKER_CODES, type Blocker, type BlockerCode, formatBlocker } from "./blocker.js";
export {
  defaultBuildFolder,
  type FilterIdentity,
  parseWorkerBuild,
  readWorkerBuild,
  type WorkerBuild,
  type WorkerBuildResult,
  workerDigestMatches,
} from "./build.js";
export { type CompileFailure, type CompileResult, compile, formatFailure, type Gate } from "./compile.js";
export {
  CONTROL_ROWS,
  CONTROLS,
  type Control,
  type ControlRow,
  type ControlState,
  isControl,
} from "./controls.js";
export {
  type ControlReport,
  type DoctorOptions,
  type DoctorReport,
  type FactReport,
  type HostRow,
  runDoctor,
  type WorkerReport,
} from "./doctor.js";
export { type DoctorTextOptions, renderDoctor } from "./doctor-text.js";
export type { ProbeAct, ProbeAttempt, ProbeResult, ProbeVerdict } from "./escape-probes.js";
export {
  type ControlEvidence,
  type EvidenceLevel,
  judgeEvidence,
  judgeTier,
  type Tier,
} from "./evidence.js";
export { exitCodeRow, explainStart, type StartFailure } from "./exits.js";
export { describePlan, launchPlanned } from "./launch.js";
export type { ControlStatus, Layer } from "./linux-controls.js";
export { OBSERVATIONS, type Observation, type ObservationName, type ObservationRow } from "./observe.js";
export {
  type PlanDescription,
  PlanError,
  type PlanErrorReason,
  type PlanLimits,
  SandboxPlan,
} from "./plan.js";
export {
  type DefaultPolicyOptions,
  defaultPolicy,
  formatProblem,
  type IsolationLevel,
  type PolicyLimits,
  type PolicyProblem,
  type PolicyResult,
  parsePolicy,
  policyFromJson,
  policyToJson,
  type RequiredControl,
  requiredControls,
  type SandboxPolicy,
} from "./policy.js";
export { type PreparedPlan, type PrepareOptions, preparePlan } from "./prepare.js";
export {
  type HostCapabilities,
  type HostFacts,
  hostSources,
  type KernelFacts,
  type ProbeSources,
  probe,
} from "./probe.js";
export { syscallName } from "./syscall-names.js";
export { FACT_NAMES, FACT_ROWS, type FactRefusal, type FactRow, judgeWelcome } from "./welcome.js";
