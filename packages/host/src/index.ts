/** The host functions: registry, built-in rows, and the way of one call to its handler. */

import type { HostFunction } from "./registry.js";
import { sleep } from "./sleep.js";

export {
  type CallOutcome,
  type Effect,
  effects,
  HostError,
  type HostErrorCode,
  type HostErrorOptions,
} from "@flowcell/protocol";
export {
  type DispatchOptions,
  dispatch,
  type IncomingCall,
  type NoteResult,
  noteCall,
  type ReadCall,
  type ReadResult,
  readCall,
  recoverCall,
  runCall,
} from "./dispatch.js";
export { createFetchFunction, type FetchOptions } from "./fetch/fetch-function.js";
export { type FetchLimits, fetchLimits } from "./fetch/limits.js";
export {
  type CallContext,
  createRegistry,
  defineHostFunction,
  type HostFunction,
  type HostFunctionDefinition,
  HostFunctionError,
  type HostFunctionLimits,
  type RecoveredResult,
  type Registry,
} from "./registry.js";
export type { Schema, SchemaIssue, SchemaResult } from "./schema.js";
export { sleepMsMax } from "./sleep.js";

/** What every script gets without a grant. */
export const builtIns: readonly HostFunction[] = Object.freeze([sleep]);
