// Watches a price list. What it saw last is in the flow's own key-value store, so that each run compares with the one before.
import { percentChange } from "./percent.js";

interface Price {
  readonly symbol: string;
  readonly cents: number;
}

export default async function (input: Input, host: Host): Promise<Output> {
  const response = await fetch(input.url, { headers: { accept: "application/json" } });
  if (!response.ok) throw new Error(`${input.url} answered ${response.status}`);
  const prices: readonly Price[] = await response.json();
  const changed: Output["changed"] = [];
  for (const { symbol, cents } of prices) {
    const before = await host.kv.get(symbol);
    await host.kv.set(symbol, cents);
    if (typeof before !== "number") continue;
    const percent = percentChange(before, cents);
    if (Math.abs(percent) < (input.percent ?? 0) || before === cents) continue;
    console.log(`${symbol}: ${before} → ${cents} (${percent} %)`);
    changed.push({ symbol, before, now: cents, percent });
  }
  return { seen: prices.length, changed };
}
