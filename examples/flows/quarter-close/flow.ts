// A parent that fans out to children. Every child is a run of its own, with its own journal and its own worker; this run holds
// no worker while it waits for them.
export default async function ({ branches }: Input, host: Host): Promise<unknown> {
  const names = Object.keys(branches);
  const started = await Promise.all(
    names.map((branch) => host.flow.start("branch-total", { branch, bookings: branches[branch] })),
  );
  const ended = await Promise.all(started.map(({ runId }) => host.flow.wait(runId)));
  const totals: Record<string, number> = {};
  const failed: string[] = [];
  ended.forEach(({ ok, value, error }, index) => {
    const name = names[index] ?? "";
    if (ok) totals[name] = (value as { total: number }).total;
    else failed.push(`${name}: ${error?.message ?? "no reason"}`);
  });
  const all = Object.values(totals).reduce((sum, total) => sum + total, 0);
  return { totals, all, failed };
}
