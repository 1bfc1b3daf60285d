/**
 * Bounds and checks of what is asked of a store beside units, made by every store before it reads or removes: what nobody can mean is a
 * mistake of the caller and throws RangeError.
 */

import type { Retention } from "./store.js";

const auditMax = 10_000;
/**
 * Rows that are removed at a time, since units wait for it: some tens of milliseconds on a disk that works. The largest run
 * that may be recorded has about as many, so that each goes in one piece.
 */
const retainedRows = 20_000;

export function pageLimit(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000)
    throw new RangeError(`a page has 1 to 1000 runs, not ${limit}`);
  return limit;
}

export function auditLimit(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > auditMax)
    throw new RangeError(`1 to ${auditMax} rows of audit are read at once, not ${limit}`);
  return limit;
}

export function checkedRetention({ finishedBefore, runsMax, flow }: Retention): Retention {
  if (!Number.isFinite(finishedBefore))
    throw new RangeError(`finishedBefore is a time, not ${finishedBefore}`);
  if (!Number.isInteger(runsMax) || runsMax < 1)
    throw new RangeError(`runsMax is a whole number from 1, not ${runsMax}`);
  return { finishedBefore, runsMax, ...(flow === undefined ? {} : { flow }) };
}

/** How much of a run has to be removed: about its rows. */
export interface RunSize {
  readonly deliveries: number;
  readonly lines: number;
}

/** How many of these runs, oldest first, are removed at a time: at least one, and no more than have that many rows. */
export function runsToRemove(runs: readonly RunSize[]): number {
  let rows = 0;
  for (const [index, { deliveries, lines }] of runs.entries()) {
    // A call beside each delivery, and the run itself.
    rows += 2 * deliveries + lines + 1;
    if (rows > retainedRows) return Math.max(1, index);
  }
  return runs.length;
}
