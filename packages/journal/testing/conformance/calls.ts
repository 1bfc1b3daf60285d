/** Calls and what is delivered for them: a part of the suite in ../conformance.ts, which says who calls it. */

import { describe, expect, test } from "vitest";
import { headsOf } from "../../src/heads.js";
import type { Operation } from "../../src/store.js";
import {
  call,
  deliver,
  finish,
  json,
  must,
  ok,
  sampleCall,
  startedRun,
  timer,
} from "../../src/testing/samples.js";
import { refused, type Stage } from "./stage.js";

export function callsConform(on: Stage): void {
  describe("deliveries", () => {
    test("are numbered without gaps, calls and timers together", async () => {
      const fence = await startedRun(on.store, "run_a");
      await must(on.store, { fence, operations: [call(0), call(1)] });
      await refused(on.store, { fence, operations: [deliver(1, 0)] }, { reason: "conflict" });
      await must(on.store, { fence, operations: [deliver(0, 1), timer(1, 1_500)] });
      await refused(on.store, { fence, operations: [deliver(1, 0, ok(0), 1_500)] }, { reason: "conflict" });
      await refused(on.store, { fence, operations: [timer(3, 1_500)] }, { reason: "conflict" });
      await must(on.store, { fence, operations: [deliver(2, 0, ok("late"), 1_500)] });
      const history = await on.store.history("run_a");
      expect(history?.deliveries.map(({ order }) => order)).toEqual([0, 1, 2]);
      expect(history?.deliveries[2]).toEqual({
        order: 2,
        kind: "call",
        guestClockMs: 1_500,
        position: 0,
        outcome: ok("late"),
        at: 2_002,
      });
      expect(history?.run).toMatchObject({ nextOrder: 3, guestClockMs: 1_500 });
    });

    test("never turn the guest's clock back", async () => {
      const fence = await startedRun(on.store, "run_a", { guestStartMs: 500.25 });
      await refused(on.store, { fence, operations: [timer(0, 500)] }, { reason: "conflict" });
      await must(on.store, { fence, operations: [timer(0, 500.25), timer(1, 700)] });
      await refused(on.store, { fence, operations: [timer(2, 699.9)] }, { reason: "conflict" });
      await must(on.store, { fence, operations: [timer(2, 700)] });
    });

    test("give a call at most one outcome, and only a recorded call", async () => {
      const fence = await startedRun(on.store, "run_a");
      await refused(on.store, { fence, operations: [deliver(0, 0)] }, { reason: "conflict", at: 0 });
      await must(on.store, { fence, operations: [call(0), deliver(0, 0)] });
      await refused(on.store, { fence, operations: [deliver(1, 0)] }, { reason: "conflict" });
      await refused(on.store, { fence, operations: [call(0)] }, { reason: "conflict" });
    });

    test("keep errors and attachments as they were given", async () => {
      const fence = await startedRun(on.store, "run_a");
      const error = { code: "upstream", message: "no \ud800 luck", retryable: false, name: "E" } as const;
      const failed = { ok: false, error: { ...error, detail: { list: [1, null] } } } as const;
      const bytes = new Uint8Array(70_000).map((_, at) => at % 251);
      const value = { ...json("with bytes", bytes, new Uint8Array(), bytes.slice(0, 9)), devalue: true };
      await must(on.store, {
        fence,
        operations: [call(0), call(1), deliver(0, 0, failed), deliver(1, 1, { ok: true, value })],
      });
      const deliveries = (await on.store.history("run_a"))?.deliveries;
      expect(deliveries).toMatchObject([{ outcome: failed }, { outcome: { ok: true, value } }]);
    });
  });

  describe("heads", () => {
    test("are the history with sizes in place of arguments and values", async () => {
      const fence = await startedRun(on.store, "run_a");
      const bytes = new Uint8Array(70_000).map((_, at) => at % 251);
      const detail = json({ ask: "é" }, bytes);
      const approval = {
        effect: "wait",
        note: { text: "n" },
        wait: { kind: "approval", title: "?", detail, timeoutMs: null },
        callId: "call_1",
      } as const;
      const error = { code: "upstream", message: "no \ud800 luck", retryable: false } as const;
      const value = json("déjà vu 🙂", bytes, new Uint8Array(), bytes.slice(0, 9));
      await must(on.store, {
        fence,
        operations: [
          call(0, { args: json(["naïve"], bytes.slice(0, 5_000), bytes) }),
          call(1),
          call(2, approval, 0),
          deliver(0, 1, { ok: false, error }),
          timer(1, 1_500),
          deliver(2, 0, { ok: true, value }, 1_500),
        ],
      });
      const history = await on.store.history("run_a");
      if (history === null) throw new Error("the run is gone");
      const heads = await on.store.heads("run_a");
      expect(heads).toEqual(headsOf(history));
      const text = Buffer.byteLength(value.text);
      expect(heads?.deliveries[2]).toMatchObject({ outcome: { ok: true, bytes: text + 70_009 } });
      expect(heads?.calls[0]).not.toHaveProperty("args");
      expect(heads?.calls[2]?.wait).toEqual(approval.wait);
      expect(await on.store.heads("run_b")).toBeNull();
    });

    test("tell what was answered; the answer itself is one question more", async () => {
      const fence = await startedRun(on.store, "run_a");
      const value = json("v", new Uint8Array(5_000).fill(3));
      await must(on.store, { fence, operations: [call(0), call(1), deliver(0, 1, { ok: true, value })] });
      expect(await on.store.outcome("run_a", 1)).toEqual({ ok: true, value });
      expect(await on.store.outcome("run_a", 0)).toBeNull();
      expect(await on.store.outcome("run_a", 2)).toBeNull();
      expect(await on.store.outcome("run_b", 1)).toBeNull();
    });
  });

  describe("calls", () => {
    test("come back as they were recorded", async () => {
      const fence = await startedRun(on.store, "run_a");
      const approval = {
        effect: "wait",
        name: "approval.request",
        note: { text: "n", number: 1.5, yes: true, nothing: null },
        wait: {
          kind: "approval",
          title: "Delete it?",
          detail: json({ rows: 3 }, new Uint8Array([1, 2])),
          timeoutMs: 5,
        },
        dueAt: 9_000,
        callId: "call_1",
      } as const;
      await must(on.store, { fence, operations: [call(1, approval), call(0, { effect: "once" }, 0)] });
      const fresh = { cancelled: false, unknownReason: null };
      expect((await on.store.history("run_a"))?.calls).toEqual([
        { ...sampleCall(0, { effect: "once" }), attempts: 0, ...fresh },
        { ...sampleCall(1, approval), attempts: 0, ...fresh },
      ]);
      expect(await on.store.callById("call_1")).toEqual({
        runId: "run_a",
        call: { ...sampleCall(1, approval), attempts: 0, ...fresh },
      });
      expect(await on.store.callById("call_2")).toBeNull();
    });

    test("have ids that no other call has", async () => {
      const fence = await startedRun(on.store, "run_a");
      const other = await startedRun(on.store, "run_b");
      await must(on.store, { fence, operations: [call(0, { callId: "call_1" })] });
      await refused(on.store, { fence, operations: [call(1, { callId: "call_1" })] }, { reason: "conflict" });
      await refused(
        on.store,
        { fence: other, operations: [call(0, { callId: "call_1" })] },
        { reason: "conflict" },
      );
    });

    test("count attempts, and are not begun after their outcome or as waits", async () => {
      const fence = await startedRun(on.store, "run_a");
      const wait = { kind: "time", waitMs: 5 } as const;
      await must(on.store, {
        fence,
        operations: [call(0, { effect: "once" }, 0), call(1, { effect: "wait", wait, dueAt: 3 })],
      });
      await must(on.store, {
        fence,
        operations: [
          { kind: "attempt", position: 0 },
          { kind: "attempt", position: 0 },
        ],
      });
      expect((await on.store.history("run_a"))?.calls[0]?.attempts).toBe(2);
      await refused(
        on.store,
        { fence, operations: [{ kind: "attempt", position: 1 }] },
        { reason: "conflict" },
      );
      await refused(
        on.store,
        { fence, operations: [{ kind: "attempt", position: 2 }] },
        { reason: "conflict" },
      );
      await must(on.store, { fence, operations: [deliver(0, 0)] });
      await refused(
        on.store,
        { fence, operations: [{ kind: "attempt", position: 0 }] },
        { reason: "conflict" },
      );
    });

    test("wait only with effect wait", async () => {
      const fence = await startedRun(on.store, "run_a");
      const wait = { kind: "time", waitMs: 5 } as const;
      await refused(on.store, { fence, operations: [call(0, { wait })] }, { reason: "conflict" });
      await refused(on.store, { fence, operations: [call(0, { dueAt: 5 })] }, { reason: "conflict" });
      await refused(
        on.store,
        { fence, operations: [call(0, { effect: "wait", wait }, 1)] },
        { reason: "conflict" },
      );
    });

    test("may be unknown while they have no outcome, if their effect is outside", async () => {
      const fence = await startedRun(on.store, "run_a");
      const unknown = (position: number, reason: string | null): Operation => ({
        kind: "unknown",
        position,
        reason,
      });
      await must(on.store, { fence, operations: [call(0, { effect: "once" }), call(1)] });
      await must(on.store, { fence, operations: [unknown(0, "reply_timeout")] });
      expect((await on.store.history("run_a"))?.calls[0]?.unknownReason).toBe("reply_timeout");
      await refused(on.store, { fence, operations: [unknown(1, "reply_timeout")] }, { reason: "conflict" });
      await must(on.store, { fence, operations: [unknown(0, null), deliver(0, 0)] });
      expect((await on.store.history("run_a"))?.calls[0]?.unknownReason).toBeNull();
      await refused(on.store, { fence, operations: [unknown(0, "again")] }, { reason: "conflict" });
    });

    test("may be cancelled at any time, which changes nothing else", async () => {
      const fence = await startedRun(on.store, "run_a");
      const cancel = (position: number): Operation => ({ kind: "cancelCall", position });
      await must(on.store, { fence, operations: [call(0), cancel(0), deliver(0, 0), cancel(0)] });
      expect((await on.store.history("run_a"))?.calls[0]?.cancelled).toBe(true);
      await refused(on.store, { fence, operations: [cancel(1)] }, { reason: "conflict" });
    });

    test("that wait are listed across unfinished runs until their outcome or cancellation", async () => {
      const [one, two] = [
        await startedRun(on.store, "run_a"),
        await startedRun(on.store, "run_b", { flow: "other" }),
      ];
      const wait = { kind: "signal", name: "go", timeoutMs: null } as const;
      const waiting = { effect: "wait", wait, dueAt: 77 } as const;
      await must(on.store, { fence: two, operations: [call(5, waiting), call(4, waiting)] });
      await must(on.store, { fence: one, operations: [call(0, waiting), call(1, waiting), call(2)] });
      await must(on.store, { fence: one, operations: [{ kind: "cancelCall", position: 1 }] });
      const expected = { wait, dueAt: 77, callId: null };
      expect(await on.store.waits()).toEqual([
        { runId: "run_a", flow: "watcher", position: 0, madeAt: 1_000, ...expected },
        { runId: "run_b", flow: "other", position: 4, madeAt: 1_004, ...expected },
        { runId: "run_b", flow: "other", position: 5, madeAt: 1_005, ...expected },
      ]);
      await must(on.store, { fence: one, operations: [deliver(0, 0)] });
      await must(on.store, { fence: two, operations: [finish()] });
      expect(await on.store.waits()).toEqual([]);
    });
  });
}
