// What the journal in memory forgets, told by hand what happens to executions; with small bounds.
import { MemoryStore, type RunRow } from "@flowcell/journal";
import { profileLimits } from "@flowcell/protocol";
import { expect, test } from "vitest";
import { Forgetting } from "./forgetting.js";
import { newRun } from "./kept-run.js";

const limits = profileLimits("codemode");

/** A run with a text of so many bytes; `end` finishes it. */
async function begun(
  store: MemoryStore,
  bytes: number,
  key?: string,
): Promise<{ readonly runId: string; end(): Promise<RunRow> }> {
  const run = newRun("codemode", { code: "x".repeat(bytes), label: undefined, limits }, key);
  const { runId } = run;
  await store.commit({ operations: [{ kind: "createRun", run }] });
  await store.commit({ operations: [{ kind: "claim", runId, owner: "test" }] });
  const fence = { runId, owner: "test", generation: 1 };
  const patch = { state: "finished", status: "completed", finishedAt: 5, changedAt: 5 } as const;
  return {
    runId,
    end: async () => {
      const result = await store.commit({ fence, operations: [{ kind: "run", patch }] });
      expect(result).toMatchObject({ ok: true });
      return await row(store, runId);
    },
  };
}

async function row(store: MemoryStore, runId: string): Promise<RunRow> {
  const found = await store.run(runId);
  if (found === null) throw new Error(`${runId} is gone`);
  return found;
}

test("an execution that never waited and has no key is gone as soon as its waiters have read it", async () => {
  const store = new MemoryStore();
  const forgetting = new Forgetting(store);
  const one = await begun(store, 10);
  forgetting.hold(one.runId);
  forgetting.hold(one.runId);
  forgetting.finished(await one.end());
  forgetting.release(one.runId);
  expect(await store.run(one.runId)).not.toBeNull();
  forgetting.release(one.runId);
  expect(await store.run(one.runId)).toBeNull();
  // Nobody waits any more when the engine tells of the end.
  const two = await begun(store, 10);
  forgetting.hold(two.runId);
  const ended = await two.end();
  forgetting.release(two.runId);
  expect(await store.run(two.runId)).not.toBeNull();
  forgetting.finished(ended);
  expect(await store.run(two.runId)).toBeNull();
});

test("those that may be asked for again are kept within a bound of bytes, the oldest go first, the last stays", async () => {
  const store = new MemoryStore();
  const forgetting = new Forgetting(store, { keptBytes: 10_000 });
  const there = async (ids: readonly string[]): Promise<boolean[]> =>
    (await Promise.all(ids.map((id) => store.run(id)))).map((found) => found !== null);
  const ids: string[] = [];
  for (const key of ["a", "b", "c", "d"]) {
    const run = await begun(store, 3000, key);
    ids.push(run.runId);
    forgetting.finished(await run.end());
  }
  expect(await there(ids)).toEqual([false, false, true, true]);
  const large = await begun(store, 50_000, "large");
  forgetting.finished(await large.end());
  expect(await there([...ids, large.runId])).toEqual([false, false, false, false, true]);
  // A key that is forgotten is free.
  const again = await begun(store, 10, "a");
  expect(await store.run(again.runId)).not.toBeNull();
});

test("one that waited for an answer is kept like one with a key", async () => {
  const store = new MemoryStore();
  const forgetting = new Forgetting(store, { keptRuns: 1 });
  const runs = [await begun(store, 10), await begun(store, 10)];
  for (const { runId, end } of runs) {
    forgetting.suspended(await row(store, runId));
    forgetting.finished(await end());
  }
  const kept = await Promise.all(runs.map(({ runId }) => store.run(runId)));
  expect(kept.map((one) => one !== null)).toEqual([false, true]);
});

test("executions that wait are bounded by bytes, and said to be so", async () => {
  const store = new MemoryStore();
  const forgetting = new Forgetting(store, { waitingBytes: 5000 });
  const run = await begun(store, 6000);
  expect(forgetting.full()).toBeUndefined();
  forgetting.suspended(await row(store, run.runId));
  forgetting.suspended(await row(store, run.runId));
  expect(forgetting.full()).toMatch(/hold [67]\d{3} bytes; answer or cancel some/);
  forgetting.finished(await run.end());
  expect(forgetting.full()).toBeUndefined();
});

test("what comes after the end of a forgotten execution is not kept", async () => {
  const store = new MemoryStore();
  const forgetting = new Forgetting(store);
  const run = await begun(store, 10);
  forgetting.finished(await run.end());
  const late = { runId: run.runId, position: 0, at: 6, reason: "late", outcome: null };
  await store.commit({ operations: [{ kind: "quarantine", row: late }] });
  forgetting.late(run.runId);
  expect(await store.quarantined(null)).toEqual([]);
});
