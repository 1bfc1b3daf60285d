// Random units give the same results in the store on disk as in memory, word for word, and leave the same rows.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { commands, flowName, runName, unitOf } from "../testing/commands.js";
import { dump } from "../testing/dump.js";
import { MemoryStore } from "./memory/store.js";
import { openSqliteStore } from "./sqlite/store.js";
import { call, must, startedRun } from "./testing/samples.js";

const folder = mkdtempSync(join(tmpdir(), "flowcell-store-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the store on disk and the one in memory answer every unit alike", { timeout: 300_000 }, async () => {
  const disk = await openSqliteStore({ path: join(folder, "store.db"), durability: "normal" });
  const memory = new MemoryStore();
  let sequences = 0;
  let applied = 0;
  let refusedUnits = 0;
  try {
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        sequences += 1;
        const tag = `${sequences}`;
        for (const run of [0, 1]) {
          for (const store of [memory, disk]) {
            const fence = await startedRun(store, runName(run, tag), { flow: flowName(run, tag) });
            const wait = { kind: "signal", name: "go", timeoutMs: null } as const;
            const operations = [call(0, { effect: "local" }), call(1, { effect: "wait", wait }), call(2)];
            await must(store, { fence, operations });
          }
        }
        for (const command of sequence) {
          const unit = await unitOf(command, memory, tag);
          const expected = await memory.commit(unit);
          expect(await disk.commit(unit)).toEqual(expected);
          if (expected.ok) applied += 1;
          else refusedUnits += 1;
        }
        const scope = {
          runs: [runName(0, tag), runName(1, tag)],
          flows: [flowName(0, tag), flowName(1, tag)],
        };
        expect(await dump(disk, scope)).toEqual(await dump(memory, scope));
        const retention = { finishedBefore: 6_000, runsMax: 1 };
        expect(await disk.retain(retention)).toBe(await memory.retain(retention));
        expect(await dump(disk, scope)).toEqual(await dump(memory, scope));
      }),
      { numRuns: 80 },
    );
  } finally {
    await disk.close();
  }
  // The sequences are worth something only if units of both kinds are many.
  expect(applied).toBeGreaterThan(200);
  expect(refusedUnits).toBeGreaterThan(200);
});
