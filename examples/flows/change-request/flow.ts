// A change that a person decides. The run holds no worker while it waits, and survives a restart of the service; the line is
// appended once, whatever crashes.
const dayMs = 86_400_000;

export default async function ({ host: name, why }: Input, host: Host): Promise<unknown> {
  const list = await host.fs.read("/config/allowed-hosts.txt");
  if (list.split("\n").includes(name)) return { changed: false, because: "it is there already" };
  const answer = await host.approval.request(`allow ${name}`, {
    detail: { why, lines: list.split("\n").length - 1 },
    timeoutMs: 3 * dayMs,
  });
  if (!answer.approved) return { changed: false, because: `${answer.by} said no` };
  await host.fs.append("/config/allowed-hosts.txt", `${name}\n`);
  return { changed: true, by: answer.by };
}
