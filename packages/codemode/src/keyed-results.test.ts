// Executions under idempotency keys: which are remembered, and for how long. Results are made by hand, bounds are small.
import { notStarted } from "@flowcell/bundle";
import { expect, test } from "vitest";
import { KeyedResults } from "./keyed-results.js";
import type { ExecuteResult } from "./result.js";

const { error: _none, ...report } = notStarted("run_1", "cancelled", { code: "caller", message: "" });

function done(value: unknown): ExecuteResult {
  return { ...report, ok: true, status: "completed", started: true, value };
}

/** Makes executions and counts them. */
function counted(keyed: KeyedResults, result: ExecuteResult) {
  const counts = { made: 0 };
  const ask = async (key: string): Promise<number> => {
    await keyed.once(key, "code", undefined, async () => {
      counts.made += 1;
      return result;
    });
    return counts.made;
  };
  return ask;
}

test("a second execution under a key is the first one", async () => {
  const ask = counted(new KeyedResults(), done(1));
  expect([await ask("k"), await ask("k"), await ask("other")]).toEqual([1, 1, 2]);
});

test("another script under a key is refused", async () => {
  const keyed = new KeyedResults();
  await keyed.once("k", "one", undefined, async () => done(1));
  expect(keyed.once("k", "two", undefined, async () => done(2))).toBeUndefined();
});

test("what never started can be tried again under its key, also as another script", async () => {
  const keyed = new KeyedResults();
  const refused = notStarted("run_2", "overloaded", { code: "queue_full", message: "full" });
  expect(await keyed.once("k", "one", undefined, async () => refused)).toBe(refused);
  expect(await keyed.once("k", "two", undefined, async () => done(2))).toMatchObject({ value: 2 });
});

test("results are remembered within a bound of bytes, the oldest goes first, the last one stays", async () => {
  const ask = counted(new KeyedResults({ bytes: 50_000 }), done("x".repeat(20_000)));
  expect([await ask("a"), await ask("b"), await ask("c")]).toEqual([1, 2, 3]);
  expect([await ask("b"), await ask("c"), await ask("a")]).toEqual([3, 3, 4]);
  const large = counted(new KeyedResults({ bytes: 100 }), done("x".repeat(20_000)));
  expect([await large("a"), await large("a"), await large("b"), await large("a")]).toEqual([1, 1, 2, 3]);
});

test("bytes beside the text count", async () => {
  const ask = counted(new KeyedResults({ bytes: 50_000 }), done(new Uint8Array(40_000)));
  expect([await ask("a"), await ask("b"), await ask("a")]).toEqual([1, 2, 3]);
});

test("a second caller may give up; the first one's execution goes on", async () => {
  const keyed = new KeyedResults();
  let finish = (_result: ExecuteResult): void => undefined;
  const first = keyed.once("k", "code", undefined, () => new Promise((resolve) => (finish = resolve)));
  const stop = new AbortController();
  const second = keyed.once("k", "code", stop.signal, async () => done("never"));
  stop.abort();
  expect(await second).toMatchObject({ ok: false, status: "cancelled", error: { code: "caller" } });
  finish(done("first"));
  expect(await first).toMatchObject({ value: "first" });
  expect(await keyed.once("k", "code", undefined, async () => done("never"))).toMatchObject({
    value: "first",
  });
});
