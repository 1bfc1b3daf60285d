// The SQLite store through its thread; the conformance suite says what every store must do.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { call, deliver, finish, json, must, startedRun } from "../testing/samples.js";
import { openSqliteStore } from "./store.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "flowcell-store-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("what was committed is there when the store is opened again", async () => {
  const path = join(folder, "store.db");
  const store = await openSqliteStore({ path });
  const fence = await startedRun(store, "run_a");
  await must(store, { fence, operations: [call(0), deliver(0, 0)] });
  await must(store, { fence, operations: [finish()] });
  const before = await store.history("run_a");
  await store.close();
  const again = await openSqliteStore({ path });
  expect(await again.history("run_a")).toEqual(before);
  expect(before?.deliveries).toHaveLength(1);
  await again.close();
});

test("units that are committed in one turn share one flush", async () => {
  const store = await openSqliteStore({ path: join(folder, "store.db") });
  const fences = await Promise.all(Array.from({ length: 100 }, (_, at) => startedRun(store, `run_${at}`)));
  const before = await store.stats();
  await Promise.all(fences.map((fence) => must(store, { fence, operations: [call(0), deliver(0, 0)] })));
  const after = await store.stats();
  expect(after.units - before.units).toBe(100);
  expect(after.flushes - before.flushes).toBe(1);
  await store.close();
});

test("a body that is stored once is there once in a history, however many hold it", async () => {
  const store = await openSqliteStore({ path: join(folder, "store.db") });
  const fence = await startedRun(store, "run_a");
  const bytes = new Uint8Array(100_000).fill(7);
  const same = { ok: true, value: json("same", bytes) } as const;
  const other = { ok: true, value: json("other", new Uint8Array(100_000).fill(8)) } as const;
  await must(store, {
    fence,
    operations: [
      call(0),
      call(1, { args: json([1], bytes) }),
      call(2),
      deliver(0, 0, same),
      deliver(1, 2, same),
      deliver(2, 1, other),
    ],
  });
  const history = await store.history("run_a");
  const held = history?.deliveries.map((one) =>
    one.kind === "call" && one.outcome.ok ? one.outcome.value.attachments[0] : undefined,
  );
  expect(held?.[0]).toEqual(bytes);
  expect(held?.[1]).toBe(held?.[0]);
  expect(history?.calls[1]?.args.attachments[0]).toBe(held?.[0]);
  expect(held?.[2]).toEqual(other.value.attachments[0]);
  await store.close();
});
