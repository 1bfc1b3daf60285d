/** Units as a whole, and the store as a whole: a part of the suite in ../conformance.ts, which says who calls it. */

import { describe, expect, test } from "vitest";
import { StoreFailure, type Unit } from "../../src/store.js";
import {
  call,
  deliver,
  json,
  must,
  ok,
  sampleRun,
  sampleVersion,
  startedRun,
  timer,
} from "../../src/testing/samples.js";
import { hash, refused, type Stage } from "./stage.js";

export function unitsConform(on: Stage): void {
  describe("units", () => {
    test("happen together or not at all", async () => {
      const fence = await startedRun(on.store, "run_a");
      await refused(
        on.store,
        {
          fence,
          operations: [
            call(0, { callId: "call_x" }),
            deliver(0, 0, ok("body", new Uint8Array(5_000))),
            { kind: "createRun", run: sampleRun("run_b", { deduplicationKey: "k" }) },
            { kind: "addVersion", version: sampleVersion(hash("a")) },
            { kind: "audit", row: { at: 1, actor: "a", action: "b", flow: null, runId: null, detail: "" } },
            { kind: "event", eventId: "e", name: "n", value: json(1), at: 1 },
            { kind: "logs", lines: [{ seq: 0, level: "log", guestTimeMs: 1, text: "x" }] },
            { kind: "run", patch: { state: "running", startedAt: 3 } },
            {
              kind: "quarantine",
              row: { runId: "run_a", position: 0, at: 1, reason: "late", outcome: null },
            },
            deliver(5, 0),
          ],
        },
        { reason: "conflict", at: 9 },
      );
      // Nor do the names that the unit would have taken.
      const { results } = await must(on.store, {
        operations: [
          { kind: "createRun", run: sampleRun("run_c", { deduplicationKey: "k" }) },
          { kind: "event", eventId: "e", name: "n", value: json(1), at: 1 },
        ],
      });
      expect(results).toEqual([
        { kind: "run", created: true, runId: "run_c" },
        { kind: "event", added: true },
      ]);
      await must(on.store, { fence, operations: [call(0, { callId: "call_x" })] });
    });

    test("are applied in the order of the calls, each whatever became of the others", async () => {
      const fence = await startedRun(on.store, "run_a");
      const answers = await Promise.all([
        on.store.commit({ fence, operations: [timer(0)] }),
        on.store.commit({ fence, operations: [timer(0)] }),
        on.store.commit({ fence, operations: [timer(1)] }),
        on.store.commit({ fence: { ...fence, owner: "x" }, operations: [timer(2)] }),
        on.store.commit({ fence, operations: [timer(2)] }),
      ]);
      expect(answers.map((answer) => (answer.ok ? "ok" : answer.reason))).toEqual([
        "ok",
        "conflict",
        "ok",
        "fenced",
        "ok",
      ]);
      expect(await on.store.run("run_a")).toMatchObject({ nextOrder: 3 });
    });

    test("are read by what is asked after them, without waiting for them", async () => {
      const fence = await startedRun(on.store, "run_a");
      const commit = on.store.commit({ fence, operations: [timer(0)] });
      expect(await on.store.run("run_a")).toMatchObject({ nextOrder: 1 });
      expect(await commit).toMatchObject({ ok: true });
    });

    test("are refused when they are malformed, with the place of the mistake", async () => {
      const fence = await startedRun(on.store, "run_a");
      const malformed: unknown[] = [
        { kind: "nothing" },
        { ...timer(0), extra: 1 },
        { kind: "timer", order: 0, guestClockMs: 1_000 },
        { ...timer(0), at: Number.NaN },
        { ...timer(0), order: -1 },
        { ...timer(0), order: 0.5 },
        call(0, { name: "" }),
        call(0, { name: "half \ud800" }),
        call(0, { note: { deep: {} } as never }),
        call(0, { note: { long: "x".repeat(5_000) } }),
        {
          ...deliver(0, 0),
          outcome: { ok: false, error: { code: "nonsense", message: "", retryable: false } },
        },
        { kind: "run", patch: { unknown: 1 } },
        { kind: "run", patch: { state: "dancing" } },
      ];
      for (const operation of malformed) {
        const unit = { fence, operations: [timer(0), operation] } as Unit; // malformed on purpose
        await refused(on.store, unit, { reason: "conflict", at: 1 });
      }
    });

    test("and rows are copies: neither side sees what the other changes", async () => {
      const fence = await startedRun(on.store, "run_a");
      const bytes = new Uint8Array([1, 2, 3]);
      const given = ok("x", bytes);
      const commit = on.store.commit({ fence, operations: [call(0), deliver(0, 0, given)] });
      bytes.fill(9);
      expect(await commit).toMatchObject({ ok: true });
      const read = async (): Promise<Uint8Array | undefined> => {
        const delivery = (await on.store.history("run_a"))?.deliveries[0];
        return delivery?.kind === "call" && delivery.outcome.ok
          ? delivery.outcome.value.attachments[0]
          : undefined;
      };
      const first = await read();
      expect(first).toEqual(new Uint8Array([1, 2, 3]));
      first?.fill(8);
      expect(await read()).toEqual(new Uint8Array([1, 2, 3]));
    });
  });

  test("a closed store rejects everything, and closes once more", async () => {
    const fence = await startedRun(on.store, "run_a");
    const last = on.store.commit({ fence, operations: [timer(0)] });
    const closed = on.store.close();
    expect(await last).toMatchObject({ ok: true });
    await closed;
    await on.store.close();
    await expect(on.store.commit({ operations: [] })).rejects.toThrow(StoreFailure);
    await expect(on.store.run("run_a")).rejects.toThrow(StoreFailure);
    await expect(on.store.stats()).rejects.toThrow(StoreFailure);
  });

  test("limits that nobody can mean are refused", async () => {
    for (const limit of [0, -1, 1.5, 10_001]) await expect(on.store.audit(limit)).rejects.toThrow(RangeError);
    for (const runsMax of [0, -1, 1.5])
      await expect(on.store.retain({ finishedBefore: 1, runsMax })).rejects.toThrow(RangeError);
    await expect(on.store.retain({ finishedBefore: Number.NaN, runsMax: 1 })).rejects.toThrow(RangeError);
  });

  test("stats count units", async () => {
    const before = await on.store.stats();
    await startedRun(on.store, "run_a");
    const after = await on.store.stats();
    expect(after.units - before.units).toBe(1);
    expect(after.lastError).toBeNull();
  });
}
