// The memory store keeps what is said in store.ts; the conformance suite says what that is.
import { expect, test } from "vitest";
import { call, deliver, must, startedRun } from "../testing/samples.js";
import { MemoryStore } from "./store.js";

test("a refused unit leaves no trace of the operations before the refused one", async () => {
  const store = new MemoryStore();
  const fence = await startedRun(store, "run_a");
  await must(store, { fence, operations: [call(0)] });
  const before = await store.history("run_a");
  const result = await store.commit({ fence, operations: [deliver(0, 0), call(1), deliver(7, 1)] });
  expect(result).toMatchObject({ ok: false, reason: "conflict", at: 2 });
  expect(await store.history("run_a")).toEqual(before);
});
