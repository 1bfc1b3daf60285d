/** Checks of what a page of rows may be, asked by every store before it reads. */

/** A page that nobody can mean is a mistake of the caller. */
export function pageLimit(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000)
    throw new RangeError(`a page has 1 to 1000 runs, not ${limit}`);
  return limit;
}
