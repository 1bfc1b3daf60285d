/** To one decimal. */
export function percentChange(before: number, now: number): number {
  return Math.round(((now - before) / before) * 1000) / 10;
}
