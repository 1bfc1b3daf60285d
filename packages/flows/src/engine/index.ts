/** The engine of runs: what the service makes of it. */

export { callDigest } from "./digest.js";
export { runErrorJson } from "./errors.js";
export { runOutcome } from "./run-outcome.js";
export { createRunner, type RunnerOptions } from "./runner.js";
