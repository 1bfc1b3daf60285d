/**
 * The rows that the run of a flow gets without a grant. In a file of their own, so that a program that runs no flows does
 * not load them.
 */

import { approvalRequest } from "./approval.js";
import type { HostFunction } from "./registry.js";
import { signalWait } from "./signal.js";

/** Beside `builtIns`: what waits for somebody without a worker. */
export const runFunctions: readonly HostFunction[] = Object.freeze([signalWait, approvalRequest]);
