// A report over every CSV file of a mount. Runs at night by its trigger, and by hand at any time.
import { parseSales, type Sale } from "./sales.js";

export default async function (input: Input, host: Host): Promise<Output> {
  const day = new Date(input.scheduledAt ?? Date.now()).toISOString().slice(0, 10);
  const entries = await host.fs.list("/sales");
  const names = entries
    .filter(({ name, kind }) => kind === "file" && name.endsWith(".csv"))
    .map(({ name }) => name);
  const texts = await Promise.all(names.map((name) => host.fs.read(`/sales/${name}`)));
  const sales = texts.flatMap((text, index) => parseSales(text, names[index] ?? ""));
  const report = `/reports/sales-${day}.md`;
  await host.fs.write(report, render(day, sales));
  const totalCents = sales.reduce((sum, { cents, quantity }) => sum + cents * quantity, 0);
  console.log(`${sales.length} sales of ${names.length} files in ${report}`);
  return { report, files: names.length, totalCents };
}

function render(day: string, sales: readonly Sale[]): string {
  const bySku = new Map<string, number>();
  for (const { sku, cents, quantity } of sales) bySku.set(sku, (bySku.get(sku) ?? 0) + cents * quantity);
  const rows = [...bySku]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([sku, cents]) => `| ${sku} | ${(cents / 100).toFixed(2)} |`);
  return [`# Sales of ${day}`, "", "| article | EUR |", "|---|---:|", ...rows, ""].join("\n");
}
