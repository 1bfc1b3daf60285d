/** The result of a run, as the library gives it: protocol's object with the confinement of the sandbox's workers. */

import type { RunCompletedOf, RunFailedOf } from "@flowcell/protocol";
import type { WorkerConfinement } from "@flowcell/sandbox";

export { assembleResult, bundleFailed, logLine, notStarted } from "@flowcell/bundle";
export type { ErrorReport, LogLine, RunError } from "@flowcell/protocol";

export type RunCompleted<Value = unknown> = RunCompletedOf<Value, WorkerConfinement>;
export type RunFailed = RunFailedOf<WorkerConfinement>;
export type RunResult<Value = unknown> = RunCompleted<Value> | RunFailed;
