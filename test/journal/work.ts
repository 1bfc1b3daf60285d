// How a test sees that nothing that the writer did is half there.

import { expect } from "vitest";
import type { Store } from "../../packages/journal/src/index.js";
import { bodyOf, runIds, unitOf } from "./shape.js";

/** The highest n of each run that the writer printed as acknowledged; -1 for none. */
export function acknowledged(lines: readonly string[]): Map<string, number> {
  const last = new Map(runIds.map((runId) => [runId, -1]));
  for (const line of lines) {
    const [word, runId, n] = line.split(" ");
    if (word === "ok" && runId !== undefined) last.set(runId, Math.max(last.get(runId) ?? -1, Number(n)));
  }
  return last;
}

/** Every unit up to some n is whole, none beyond is there at all, and n is at least what was acknowledged. */
export async function expectWhole(store: Store, lines: readonly string[]): Promise<void> {
  for (const [runId, least] of acknowledged(lines)) {
    const history = await store.history(runId);
    if (history === null) {
      expect(least).toBe(-1);
      continue;
    }
    const { run, calls, deliveries } = history;
    expect(calls.length - 1).toBeGreaterThanOrEqual(least);
    expect(calls.map(({ position }) => position)).toEqual(calls.map((_, n) => n));
    expect(deliveries.map(({ order }) => order)).toEqual(calls.map((_, n) => n));
    for (const { position, args } of calls) {
      const body = bodyOf(position);
      expect(args).toEqual({ text: `${position}`, devalue: false, attachments: body === null ? [] : [body] });
    }
    const logs = await store.logs(runId);
    expect(logs.map(({ text }) => text)).toEqual(calls.map((_, n) => `line ${n}`));
    expect(run).toMatchObject({ nextOrder: calls.length, nextLog: calls.length });
    expect(await countOf(store, runId)).toBe(calls.length === 0 ? null : calls.length - 1);
  }
}

/** What the flow's key says, asked by a call that the store then forgets: the unit is refused by its last operation. */
async function countOf(store: Store, runId: string): Promise<number | null> {
  const run = await store.run(runId);
  const flow = run?.flow ?? "";
  const probe = `run_probe_${flow}_${Math.random()}`;
  const input = { text: "1", devalue: false, attachments: [] };
  await store.commit({
    operations: [
      {
        kind: "createRun",
        run: {
          runId: probe,
          flow,
          versionHash: "v",
          trigger: { kind: "manual", by: "test" },
          deduplicationKey: null,
          concurrencyKey: "",
          input,
          seed: "s",
          guestStartMs: 0,
          createdAt: 0,
          notBefore: 0,
          deadlineMs: 1,
          attempt: 1,
        },
      },
      { kind: "claim", runId: probe, owner: "test" },
    ],
  });
  const fence = { runId: probe, owner: "test", generation: 1 };
  const [call] = unitOf(fence, 0).operations;
  if (call === undefined) throw new Error("a unit has operations");
  const read = { order: 0, guestClockMs: 0, position: 0, bytesMax: 0, at: 0 };
  const result = await store.commit({
    fence,
    operations: [call, { kind: "local", ...read, operation: { kind: "kv.get", key: "count" } }],
  });
  const outcome = result.ok ? result.results[1] : undefined;
  if (outcome?.kind !== "outcome" || !outcome.outcome.ok) throw new Error("the key cannot be read");
  const { text } = outcome.outcome.value;
  return text === "-1" ? null : Number(text);
}
