// Explains how a worker ended before it said Welcome: exit code → step → what the operator can do.
//
// Called by the pool for a worker that died while starting, and by doctor. The codes are those of
// profiles/exit-codes.json (exit-codes.generated.ts). TRUST: a subverted worker could choose its code, but before
// Welcome it has received nothing that could subvert it; the code is a diagnosis, not a permission.
import type { WorkerExit } from "@flowcell/native";
import { EXIT_CODES, type ExitCodeRow } from "./exit-codes.generated.js";

/** Why a worker did not start, as the outcome `sandbox_unavailable` with the reason `start_failed`. */
export interface StartFailure {
  readonly reason: "start_failed";
  /** Name of the step that failed, such as `landlock_missing`; `signal` or `unknown` otherwise. */
  readonly step: string;
  readonly message: string;
  readonly remedy: string;
}

const BY_CODE: ReadonlyMap<number, ExitCodeRow> = new Map(EXIT_CODES.map((row) => [row.code, row]));

/** The row of an exit code, or undefined for a code that means nothing to flowcell. */
export function exitCodeRow(code: number): ExitCodeRow | undefined {
  return BY_CODE.get(code);
}

/** What signals mean for a process that has not yet read anything. */
const SIGNALS: Readonly<Record<string, readonly [string, string]>> = {
  SIGSYS: [
    "the kernel killed it for a system call that its filter refuses",
    "the worker and its filter do not fit each other, or a filter around the service is stricter: rebuild, then run `flowcell doctor`",
  ],
  SIGKILL: [
    "somebody killed it, or the kernel did for lack of memory or for its CPU limit",
    "look for the out-of-memory killer in the kernel's log and at the memory limit of the service",
  ],
  SIGSEGV: [
    "it touched memory that it has not",
    "report it with the kernel version; the worker binary may be damaged",
  ],
  SIGBUS: [
    "it touched memory that could not be provided",
    "check that the worker binary is complete and memory is free",
  ],
  SIGILL: ["it met an instruction that this processor has not", "rebuild the native parts on this machine"],
  SIGTRAP: ["it gave up at a check of its own", "report it with the kernel version"],
};

/** Explains the end of a worker that never said Welcome. */
export function explainStart(exit: WorkerExit): StartFailure {
  if (exit.code !== null) {
    const row = BY_CODE.get(exit.code);
    if (row !== undefined) {
      return {
        reason: "start_failed",
        step: row.name,
        message: `the worker refused to start at step ${row.name} (exit ${row.code}): ${row.when}`,
        remedy: row.remedy,
      };
    }
    if (exit.code === 0) {
      return {
        reason: "start_failed",
        step: "unknown",
        message: "the worker ended in good order before it said Welcome",
        remedy: "its standard input was closed early; report it unless the service was ending",
      };
    }
    return {
      reason: "start_failed",
      step: "unknown",
      message: `the worker ended with exit code ${exit.code}, which means nothing to flowcell`,
      remedy: "check that the worker binary is flowcell's own: `npm run build`",
    };
  }
  if (exit.signal === null) {
    return {
      reason: "start_failed",
      step: "unknown",
      message: "the worker ended before it said Welcome, and other code of this process collected how",
      remedy: "do not wait for children that you did not start in the process that runs flowcell",
    };
  }
  const [what, remedy] = SIGNALS[exit.signal] ?? ["a signal ended it", "report it with the kernel version"];
  return {
    reason: "start_failed",
    step: "signal",
    message: `the worker ended by ${exit.signal} before it said Welcome: ${what}`,
    remedy,
  };
}
