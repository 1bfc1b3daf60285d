/**
 * Checks of what is asked of a store beside units, made by every store before it reads or removes: what nobody can mean is a
 * mistake of the caller and throws RangeError.
 */

import type { Retention } from "./store.js";

const auditMax = 10_000;

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
