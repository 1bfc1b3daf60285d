/**
 * What one run may leave in its journal. Every activation and every later owner of the store holds all of it in memory, so a
 * run that goes beyond ends, and what it had begun is looked after as at any other end. What is on its way by then is still
 * recorded: no more than the calls in flight.
 */

import { close, runError } from "./ending.js";
import type { Run } from "./run.js";

export const recordedBytesUsual = 256 * 1024 * 1024;
export const timersUsual = 100_000;

export function holdToBounds(run: Run): void {
  if (run.phase !== "pending" && run.phase !== "active" && run.phase !== "suspending") return;
  const { recorded, options } = run;
  if (recorded.bytes > options.recordedBytesMost)
    exceed(
      run,
      `the run's journal holds ${recorded.bytes} bytes of arguments and outcomes, and may hold ${options.recordedBytesMost}: read and send less at a time, or let other runs do parts of it (host.flow.start)`,
      { limit: options.recordedBytesMost, used: recorded.bytes },
    );
  else if (recorded.timers > options.timersMost)
    exceed(
      run,
      `${recorded.timers} timers of the script fired, and ${options.timersMost} may in one run: wait longer at a time, or wait for what it polls (host.sleep, host.signal.wait)`,
      { limit: options.timersMost, used: recorded.timers },
    );
}

function exceed(run: Run, message: string, figures: { readonly limit: number; readonly used: number }): void {
  const error = runError("record_size", "BudgetExceeded", message, figures);
  close(run, { status: "budget_exceeded", reason: "record_size", ...error }, message);
}
