// Runs of different branches go side by side, runs of the same one take turns (`concurrency` in flow.json).
export default async function ({ branch, bookings }: Input): Promise<{ branch: string; total: number }> {
  if (bookings.length === 0) throw new Error(`${branch} has no bookings`);
  return { branch, total: bookings.reduce((sum, cents) => sum + cents, 0) };
}
