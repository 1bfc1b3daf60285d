// The memory store keeps what is said in store.ts; the conformance suite says what that is.
import { expect, test } from "vitest";
import { call, deliver, finish, json, must, ok, startedRun } from "../testing/samples.js";
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

test("a finished run that is forgotten leaves nothing, neither its key nor its call ids nor what came late", async () => {
  const store = new MemoryStore();
  const fence = await startedRun(store, "run_a", { deduplicationKey: "k" });
  await must(store, { fence, operations: [call(0, { callId: "call_a", effect: "wait" }), deliver(0, 0)] });
  store.forget("run_a");
  expect(await store.run("run_a")).not.toBeNull();
  await must(store, { fence, operations: [finish()] });
  const late = { runId: "run_a", position: 0, at: 6_000, reason: "late", outcome: ok("late") };
  await must(store, { operations: [{ kind: "quarantine", row: late }] });
  store.forget("run_a");
  expect([await store.run("run_a"), await store.callById("call_a")]).toEqual([null, null]);
  expect(await store.quarantined(null)).toEqual([]);
  await must(store, { operations: [{ kind: "quarantine", row: late }] });
  store.forget("run_a");
  expect(await store.quarantined(null)).toEqual([]);
  // The key is free.
  await startedRun(store, "run_b", { deduplicationKey: "k" });
  expect(await store.run("run_b")).not.toBeNull();
});

test("what a run takes grows by its texts and bytes", async () => {
  const store = new MemoryStore();
  const fence = await startedRun(store, "run_a");
  const before = store.bytesOf("run_a");
  const args = json("x".repeat(1000), new Uint8Array(500));
  await must(store, { fence, operations: [call(0, { args }), deliver(0, 0, ok("y".repeat(2000)))] });
  expect(store.bytesOf("run_a") - before).toBeGreaterThan(3500);
  expect(store.bytesOf("run_nothing")).toBe(0);
});
