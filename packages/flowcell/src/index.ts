/**
 * flowcell as a library: `run` for one script, `createRuntime` for a program that sets limits, host functions or policy.
 *
 *     const result = await run({ path: "flow.ts", input: { n: 1 } });
 *     if (result.ok) console.log(result.value); else console.error(result.status, result.error.stack);
 */

export type { Place } from "@flowcell/bundle";
export {
  type CallContext,
  defineHostFunction,
  type Effect,
  HostError,
  type HostErrorCode,
  type HostErrorOptions,
  type HostFunction,
  type HostFunctionDefinition,
  HostFunctionError,
  type HostFunctionLimits,
  type Schema,
} from "@flowcell/host";
export type { CallRecord, CallState, PoolEvent, PoolHealth, Usage } from "@flowcell/pool";
export type { ConsoleLevel, LimitName, Limits, ProfileName, Status, WarningData } from "@flowcell/protocol";
export type { LiveLayer, WorkerConfinement } from "@flowcell/sandbox";
export type { RunOptions, RuntimeOptions } from "./options.js";
export type { ErrorReport, LogLine, RunCompleted, RunError, RunFailed, RunResult } from "./result.js";
export { run } from "./run.js";
export { createRuntime, type Runtime, RuntimeOptionsError } from "./runtime.js";
export { taggedJson } from "./tagged-json.js";
