/** The result of an execution: the one object that every run returns. */

import type { RunFailedOf, RunResultOf } from "@flowcell/protocol";
import type { WorkerConfinement } from "@flowcell/sandbox";

export type ExecuteResult<Value = unknown> = RunResultOf<Value, WorkerConfinement>;
export type ExecuteFailed = RunFailedOf<WorkerConfinement>;
