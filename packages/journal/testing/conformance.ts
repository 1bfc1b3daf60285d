/**
 * What every store must do: the rules in the head of store.ts, each with its violation refused and nothing changed, and what
 * the methods promise. `storeConformance` is called by the test of each store.
 */

import type { EncodedValue } from "@flowcell/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Operation, type Store, StoreFailure, type Unit, type UnitResult } from "../src/store.js";
import {
  call,
  deliver,
  finish,
  json,
  local,
  must,
  ok,
  sampleCall,
  sampleRun,
  sampleVersion,
  startedRun,
  timer,
} from "../src/testing/samples.js";
import { dump } from "./dump.js";

type Refusal = Extract<UnitResult, { readonly ok: false }>;

/** The unit is refused as expected, and the store says what it said before. */
async function refused(store: Store, unit: Unit, expected: Partial<Refusal>): Promise<void> {
  const before = await dump(store);
  expect(await store.commit(unit)).toMatchObject({ ok: false, ...expected });
  expect(await dump(store)).toEqual(before);
}

const hash = (letter: string): string => letter.repeat(64);

export function storeConformance(name: string, open: () => Promise<Store>): void {
  describe(name, () => suite(open));
}

function suite(open: () => Promise<Store>): void {
  let store: Store;
  beforeEach(async () => {
    store = await open();
  });
  afterEach(() => store.close());

  describe("the hold on a run", () => {
    test("only the owner of the latest generation changes a run", async () => {
      const fence = await startedRun(store, "run_a");
      await must(store, { fence, operations: [call(0)] });
      await must(store, { operations: [{ kind: "claim", runId: "run_a", owner: "owner-2" }] });
      const unit = { operations: [deliver(0, 0)] };
      await refused(store, { fence, ...unit }, { reason: "fenced", at: 0 });
      await refused(store, { fence: { ...fence, generation: 2 }, ...unit }, { reason: "fenced" });
      await refused(store, { fence: { ...fence, owner: "owner-2" }, ...unit }, { reason: "fenced" });
      await must(store, { fence: { runId: "run_a", owner: "owner-2", generation: 2 }, ...unit });
    });

    test("every operation on a run is refused without the hold", async () => {
      const fence = await startedRun(store, "run_a");
      const waiting = { wait: { kind: "signal", name: "go", timeoutMs: null }, effect: "wait" } as const;
      await must(store, {
        fence,
        operations: [call(0, { effect: "once" }), call(1, waiting), call(2, { effect: "local" })],
      });
      const operations: Operation[] = [
        call(3),
        { kind: "attempt", position: 0 },
        { kind: "cancelCall", position: 0 },
        { kind: "unknown", position: 0, reason: "lost" },
        deliver(0, 0),
        timer(0),
        local(0, 2, { kind: "kv.set", key: "k", value: json(1) }),
        { kind: "takeSignal", order: 0, guestClockMs: 1_000, position: 1, name: "go", at: 1 },
        { kind: "logs", lines: [{ seq: 0, level: "log", guestTimeMs: 1, text: "x" }] },
        { kind: "run", patch: { reason: "x" } },
      ];
      for (const operation of operations) {
        const stranger = { ...fence, owner: "stranger" };
        await refused(store, { fence: stranger, operations: [operation] }, { reason: "fenced", at: 0 });
        await refused(store, { operations: [operation] }, { reason: "conflict", at: 0 });
        await refused(
          store,
          { fence: { ...fence, runId: "run_none" }, operations: [operation] },
          { reason: "fenced" },
        );
      }
    });

    test("a claim takes an unfinished run under the next generation", async () => {
      const fence = await startedRun(store, "run_a");
      const claim = { kind: "claim", runId: "run_a", owner: "owner-1" } as const;
      const { results } = await must(store, { operations: [claim] });
      expect(results).toEqual([{ kind: "claim", generation: 2 }]);
      await must(store, { fence: { ...fence, generation: 2 }, operations: [finish()] });
      await refused(store, { operations: [claim] }, { reason: "fenced" });
      await refused(store, { operations: [{ ...claim, runId: "run_none" }] }, { reason: "fenced" });
    });

    test("a claim inside a unit ends the hold that the unit began with", async () => {
      const fence = await startedRun(store, "run_a");
      const claim = { kind: "claim", runId: "run_a", owner: "owner-2" } as const;
      await refused(store, { fence, operations: [timer(0), claim, timer(1)] }, { reason: "fenced", at: 2 });
    });

    test("a unit without operations is refused without the hold", async () => {
      const fence = await startedRun(store, "run_a");
      expect(await store.commit({ fence, operations: [] })).toEqual({ ok: true, results: [] });
      await refused(
        store,
        { fence: { ...fence, generation: 7 }, operations: [] },
        { reason: "fenced", at: 0 },
      );
    });
  });

  describe("deliveries", () => {
    test("are numbered without gaps, calls and timers together", async () => {
      const fence = await startedRun(store, "run_a");
      await must(store, { fence, operations: [call(0), call(1)] });
      await refused(store, { fence, operations: [deliver(1, 0)] }, { reason: "conflict" });
      await must(store, { fence, operations: [deliver(0, 1), timer(1, 1_500)] });
      await refused(store, { fence, operations: [deliver(1, 0, ok(0), 1_500)] }, { reason: "conflict" });
      await refused(store, { fence, operations: [timer(3, 1_500)] }, { reason: "conflict" });
      await must(store, { fence, operations: [deliver(2, 0, ok("late"), 1_500)] });
      const history = await store.history("run_a");
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
      const fence = await startedRun(store, "run_a", { guestStartMs: 500.25 });
      await refused(store, { fence, operations: [timer(0, 500)] }, { reason: "conflict" });
      await must(store, { fence, operations: [timer(0, 500.25), timer(1, 700)] });
      await refused(store, { fence, operations: [timer(2, 699.9)] }, { reason: "conflict" });
      await must(store, { fence, operations: [timer(2, 700)] });
    });

    test("give a call at most one outcome, and only a recorded call", async () => {
      const fence = await startedRun(store, "run_a");
      await refused(store, { fence, operations: [deliver(0, 0)] }, { reason: "conflict", at: 0 });
      await must(store, { fence, operations: [call(0), deliver(0, 0)] });
      await refused(store, { fence, operations: [deliver(1, 0)] }, { reason: "conflict" });
      await refused(store, { fence, operations: [call(0)] }, { reason: "conflict" });
    });

    test("keep errors and attachments as they were given", async () => {
      const fence = await startedRun(store, "run_a");
      const error = { code: "upstream", message: "no \ud800 luck", retryable: false, name: "E" } as const;
      const failed = { ok: false, error: { ...error, detail: { list: [1, null] } } } as const;
      const bytes = new Uint8Array(70_000).map((_, at) => at % 251);
      const value = { ...json("with bytes", bytes, new Uint8Array(), bytes.slice(0, 9)), devalue: true };
      await must(store, {
        fence,
        operations: [call(0), call(1), deliver(0, 0, failed), deliver(1, 1, { ok: true, value })],
      });
      const deliveries = (await store.history("run_a"))?.deliveries;
      expect(deliveries).toMatchObject([{ outcome: failed }, { outcome: { ok: true, value } }]);
    });
  });

  describe("calls", () => {
    test("come back as they were recorded", async () => {
      const fence = await startedRun(store, "run_a");
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
      await must(store, { fence, operations: [call(1, approval), call(0, { effect: "once" }, 0)] });
      const fresh = { cancelled: false, unknownReason: null };
      expect((await store.history("run_a"))?.calls).toEqual([
        { ...sampleCall(0, { effect: "once" }), attempts: 0, ...fresh },
        { ...sampleCall(1, approval), attempts: 0, ...fresh },
      ]);
      expect(await store.callById("call_1")).toEqual({
        runId: "run_a",
        call: { ...sampleCall(1, approval), attempts: 0, ...fresh },
      });
      expect(await store.callById("call_2")).toBeNull();
    });

    test("have ids that no other call has", async () => {
      const fence = await startedRun(store, "run_a");
      const other = await startedRun(store, "run_b");
      await must(store, { fence, operations: [call(0, { callId: "call_1" })] });
      await refused(store, { fence, operations: [call(1, { callId: "call_1" })] }, { reason: "conflict" });
      await refused(
        store,
        { fence: other, operations: [call(0, { callId: "call_1" })] },
        { reason: "conflict" },
      );
    });

    test("count attempts, and are not begun after their outcome or as waits", async () => {
      const fence = await startedRun(store, "run_a");
      const wait = { kind: "time", waitMs: 5 } as const;
      await must(store, {
        fence,
        operations: [call(0, { effect: "once" }, 0), call(1, { effect: "wait", wait, dueAt: 3 })],
      });
      await must(store, {
        fence,
        operations: [
          { kind: "attempt", position: 0 },
          { kind: "attempt", position: 0 },
        ],
      });
      expect((await store.history("run_a"))?.calls[0]?.attempts).toBe(2);
      await refused(store, { fence, operations: [{ kind: "attempt", position: 1 }] }, { reason: "conflict" });
      await refused(store, { fence, operations: [{ kind: "attempt", position: 2 }] }, { reason: "conflict" });
      await must(store, { fence, operations: [deliver(0, 0)] });
      await refused(store, { fence, operations: [{ kind: "attempt", position: 0 }] }, { reason: "conflict" });
    });

    test("wait only with effect wait", async () => {
      const fence = await startedRun(store, "run_a");
      const wait = { kind: "time", waitMs: 5 } as const;
      await refused(store, { fence, operations: [call(0, { wait })] }, { reason: "conflict" });
      await refused(store, { fence, operations: [call(0, { dueAt: 5 })] }, { reason: "conflict" });
      await refused(
        store,
        { fence, operations: [call(0, { effect: "wait", wait }, 1)] },
        { reason: "conflict" },
      );
    });

    test("may be unknown while they have no outcome, if their effect is outside", async () => {
      const fence = await startedRun(store, "run_a");
      const unknown = (position: number, reason: string | null): Operation => ({
        kind: "unknown",
        position,
        reason,
      });
      await must(store, { fence, operations: [call(0, { effect: "once" }), call(1)] });
      await must(store, { fence, operations: [unknown(0, "reply_timeout")] });
      expect((await store.history("run_a"))?.calls[0]?.unknownReason).toBe("reply_timeout");
      await refused(store, { fence, operations: [unknown(1, "reply_timeout")] }, { reason: "conflict" });
      await must(store, { fence, operations: [unknown(0, null), deliver(0, 0)] });
      expect((await store.history("run_a"))?.calls[0]?.unknownReason).toBeNull();
      await refused(store, { fence, operations: [unknown(0, "again")] }, { reason: "conflict" });
    });

    test("may be cancelled at any time, which changes nothing else", async () => {
      const fence = await startedRun(store, "run_a");
      const cancel = (position: number): Operation => ({ kind: "cancelCall", position });
      await must(store, { fence, operations: [call(0), cancel(0), deliver(0, 0), cancel(0)] });
      expect((await store.history("run_a"))?.calls[0]?.cancelled).toBe(true);
      await refused(store, { fence, operations: [cancel(1)] }, { reason: "conflict" });
    });

    test("that wait are listed across unfinished runs until their outcome or cancellation", async () => {
      const [one, two] = [
        await startedRun(store, "run_a"),
        await startedRun(store, "run_b", { flow: "other" }),
      ];
      const wait = { kind: "signal", name: "go", timeoutMs: null } as const;
      const waiting = { effect: "wait", wait, dueAt: 77 } as const;
      await must(store, { fence: two, operations: [call(5, waiting), call(4, waiting)] });
      await must(store, { fence: one, operations: [call(0, waiting), call(1, waiting), call(2)] });
      await must(store, { fence: one, operations: [{ kind: "cancelCall", position: 1 }] });
      const expected = { wait, dueAt: 77, callId: null };
      expect(await store.waits()).toEqual([
        { runId: "run_a", flow: "watcher", position: 0, madeAt: 1_000, ...expected },
        { runId: "run_b", flow: "other", position: 4, madeAt: 1_004, ...expected },
        { runId: "run_b", flow: "other", position: 5, madeAt: 1_005, ...expected },
      ]);
      await must(store, { fence: one, operations: [deliver(0, 0)] });
      await must(store, { fence: two, operations: [finish()] });
      expect(await store.waits()).toEqual([]);
    });
  });

  describe("runs", () => {
    test("start pending, held by nobody, with what they were made of", async () => {
      const run = sampleRun("run_a", { deduplicationKey: "k", input: json(1, new Uint8Array(9_000)) });
      await must(store, { operations: [{ kind: "createRun", run }] });
      expect(await store.run("run_a")).toEqual({
        ...run,
        state: "pending",
        status: null,
        reason: null,
        startedAt: null,
        finishedAt: null,
        changedAt: 1_000,
        activeMs: 0,
        dueAt: null,
        activations: 0,
        failures: 0,
        cpuUs: 0,
        heapPeakBytes: 0,
        fingerprint: null,
        endOrder: null,
        endStatus: null,
        result: null,
        errorJson: null,
        warningsJson: "[]",
        confinementJson: null,
        cancelRequestedBy: null,
        owner: null,
        generation: 0,
        nextOrder: 0,
        guestClockMs: 1_000,
        nextLog: 0,
      });
      expect(await store.run("run_b")).toBeNull();
      expect(await store.history("run_b")).toBeNull();
    });

    test("are made once for each deduplication key, also after removal", async () => {
      const make = async (runId: string, flow: string): Promise<unknown> => {
        const run = sampleRun(runId, { flow, deduplicationKey: "same" });
        return (await must(store, { operations: [{ kind: "createRun", run }] })).results[0];
      };
      expect(await make("run_a", "one")).toEqual({ kind: "run", created: true, runId: "run_a" });
      expect(await make("run_b", "one")).toEqual({ kind: "run", created: false, runId: "run_a" });
      expect(await store.run("run_b")).toBeNull();
      expect(await make("run_c", "two")).toEqual({ kind: "run", created: true, runId: "run_c" });
      await must(store, { operations: [{ kind: "claim", runId: "run_a", owner: "o" }] });
      await must(store, { fence: { runId: "run_a", owner: "o", generation: 1 }, operations: [finish(10)] });
      expect(await store.retain({ finishedBefore: 11, runsMax: 10 })).toBe(1);
      expect(await store.run("run_a")).toBeNull();
      expect(await make("run_d", "one")).toEqual({ kind: "run", created: false, runId: "run_a" });
    });

    test("are not made twice under one id", async () => {
      await startedRun(store, "run_a");
      const again = { kind: "createRun", run: sampleRun("run_a") } as const;
      await refused(store, { operations: [again] }, { reason: "conflict" });
    });

    test("take patches, each state with the statuses it can have", async () => {
      const fence = await startedRun(store, "run_a");
      const patch = (changes: Extract<Operation, { readonly kind: "run" }>["patch"]): Unit => ({
        fence,
        operations: [{ kind: "run", patch: changes }],
      });
      for (const wrong of [
        { state: "suspended" },
        { state: "suspended", status: "completed" },
        { state: "running", status: "completed" },
        { state: "finished" },
        { state: "finished", status: "completed" },
        { state: "finished", status: "suspended", finishedAt: 5 },
        { finishedAt: 5 },
        { endOrder: 0 },
        { endOrder: 1, endStatus: "completed" },
        { endOrder: 0, endStatus: "needs_reconcile" },
      ] as const) {
        await refused(store, patch(wrong), { reason: "conflict" });
      }
      await must(store, patch({ state: "suspended", status: "needs_reconcile", dueAt: 4, changedAt: 9 }));
      await must(store, patch({ state: "running", status: null, dueAt: null, warningsJson: '["w"]' }));
      await must(store, patch({ endOrder: 0, endStatus: "script_error", cpuUs: 12.5 }));
      await must(store, patch({}));
      expect(await store.run("run_a")).toMatchObject({
        state: "running",
        status: null,
        dueAt: null,
        changedAt: 9,
        warningsJson: '["w"]',
        endOrder: 0,
        endStatus: "script_error",
        cpuUs: 12.5,
      });
    });

    test("never change once they are finished", async () => {
      const fence = await startedRun(store, "run_a");
      const wait = { kind: "signal", name: "go", timeoutMs: null } as const;
      await must(store, { fence, operations: [call(0), call(1, { effect: "wait", wait })] });
      await must(store, { fence, operations: [finish()] });
      expect(await store.run("run_a")).toMatchObject({ status: "completed", result: json("done") });
      for (const operation of [deliver(0, 0), timer(0), call(2), finish()]) {
        await refused(store, { fence, operations: [operation] }, { reason: "fenced" });
      }
      const signal = {
        kind: "sendSignal",
        runId: "run_a",
        name: "go",
        value: json(1),
        signalId: "s",
        at: 1,
      } as const;
      expect((await must(store, { operations: [signal] })).results).toEqual([{ kind: "sent", sent: false }]);
    });

    test("are not changed by what follows their end in the same unit", async () => {
      const fence = await startedRun(store, "run_a");
      await refused(store, { fence, operations: [finish(), timer(0)] }, { reason: "fenced", at: 1 });
      await must(store, { fence, operations: [timer(0), finish()] });
    });

    test("are listed newest first in pages, by flow, state and status", async () => {
      for (let at = 0; at < 7; at++) {
        // Clocks of hosts go back: the order of making counts.
        const changes = { flow: at % 2 === 0 ? "even" : "odd", createdAt: 1_000 - at };
        const fence = await startedRun(store, `run_${at}`, changes);
        if (at < 4) await must(store, { fence, operations: [finish()] });
      }
      const ids = async (query: Parameters<Store["runs"]>[0]): Promise<string[]> =>
        (await store.runs(query)).map(({ runId }) => runId);
      expect(await ids({ limit: 3 })).toEqual(["run_6", "run_5", "run_4"]);
      expect(await ids({ limit: 3, before: "run_4" })).toEqual(["run_3", "run_2", "run_1"]);
      expect(await ids({ limit: 3, before: "run_1" })).toEqual(["run_0"]);
      expect(await ids({ limit: 3, before: "run_0" })).toEqual([]);
      expect(await ids({ limit: 3, before: "run_none" })).toEqual([]);
      expect(await ids({ limit: 9, flow: "odd" })).toEqual(["run_5", "run_3", "run_1"]);
      expect(await ids({ limit: 9, states: ["finished"], flow: "even" })).toEqual(["run_2", "run_0"]);
      expect(await ids({ limit: 9, states: ["pending", "running"] })).toEqual(["run_6", "run_5", "run_4"]);
      expect(await ids({ limit: 1, statuses: ["completed", "denied"] })).toEqual(["run_3"]);
      expect(await ids({ limit: 9, statuses: ["denied"] })).toEqual([]);
      expect((await store.unfinished()).map(({ runId }) => runId)).toEqual(["run_4", "run_5", "run_6"]);
      for (const limit of [0, 1001, 1.5]) await expect(store.runs({ limit })).rejects.toThrow(RangeError);
    });
  });

  describe("local operations", () => {
    /** Carries operations out as calls of one run and answers their outcomes. */
    async function kv(
      runId: string,
      operations: readonly Parameters<typeof local>[2][],
      bytesMax?: number,
    ): Promise<unknown[]> {
      const flow = runId.split("_")[1] ?? "";
      const fence = await startedRun(store, runId, { flow });
      const outcomes: unknown[] = [];
      for (const [at, operation] of operations.entries()) {
        const unit = {
          fence,
          operations: [call(at, { effect: "local" }), local(at, at, operation, bytesMax)],
        };
        const outcome = (await must(store, unit)).results[1];
        outcomes.push(outcome?.kind === "outcome" && outcome.outcome.ok ? outcome.outcome.value : outcome);
      }
      const recorded = (await store.history(runId))?.deliveries.map((one) =>
        one.kind === "call" && one.outcome.ok ? one.outcome.value : one,
      );
      // What the script gets is what the journal says.
      for (const [at, outcome] of outcomes.entries()) {
        if (typeof outcome === "object" && outcome !== null && "text" in outcome)
          expect(recorded?.[at]).toEqual(outcome);
      }
      return outcomes;
    }

    const absent: EncodedValue = { text: "-1", devalue: true, attachments: [] };

    test("set, get, delete and list keys of the flow, across its runs", async () => {
      const big = json("big", new Uint8Array(10_000).fill(7));
      expect(
        await kv("run_one", [
          { kind: "kv.get", key: "a" },
          { kind: "kv.set", key: "a", value: json(1) },
          { kind: "kv.set", key: "a", value: big },
          { kind: "kv.get", key: "a" },
        ]),
      ).toEqual([absent, absent, absent, big]);
      expect(await kv("run_two_x", [{ kind: "kv.get", key: "a" }])).toEqual([absent]);
      expect(
        await kv("run_one_again", [
          { kind: "kv.get", key: "a" },
          { kind: "kv.delete", key: "a" },
          { kind: "kv.delete", key: "a" },
          { kind: "kv.get", key: "a" },
        ]),
      ).toEqual([big, json(true), json(false), absent]);
    });

    test("list keys by their UTF-8 bytes, with prefix, start and limit", async () => {
      const keys = ["b", "a/2", "a/10", "a", "a/\u{1f600}", "a/\uffee", "a/\u0000", "B"];
      const list = (prefix: string, after: string | null, limit: number): Parameters<typeof local>[2] => ({
        kind: "kv.list",
        prefix,
        after,
        limit,
      });
      const outcomes = await kv("run_one", [
        ...keys.map((key) => ({ kind: "kv.set", key, value: json(0) }) as const),
        list("", null, 100),
        list("a/", null, 100),
        list("a/", "a/10", 2),
        list("a/", "A", 1),
        list("a/", "b", 9),
        list("a/", null, 0),
      ]);
      const under = ["a/\u0000", "a/10", "a/2", "a/\uffee", "a/\u{1f600}"];
      expect(outcomes.slice(keys.length)).toEqual(
        [["B", "a", ...under, "b"], under, ["a/2", "a/\uffee"], ["a/\u0000"], [], []].map((one) => json(one)),
      );
    });

    test("compare and set as a whole", async () => {
      const swap = (
        expected: EncodedValue | null,
        value: EncodedValue | null,
      ): Parameters<typeof local>[2] => ({
        kind: "kv.compareAndSet",
        key: "k",
        expected,
        value,
      });
      expect(
        await kv("run_one", [
          swap(json(1), json(2)),
          swap(null, json(1)),
          swap(null, json(3)),
          swap(json(1), json(2, new Uint8Array([1]))),
          swap(json(2), json(4)),
          swap(json(2, new Uint8Array([1])), null),
          { kind: "kv.get", key: "k" },
        ]),
      ).toEqual([json(false), json(true), json(false), json(true), json(false), json(true), absent]);
    });

    test("keep to the bytes that the flow may have", async () => {
      const set = (key: string, bytes: number): Parameters<typeof local>[2] => ({
        kind: "kv.set",
        key,
        value: { text: "1", devalue: false, attachments: [new Uint8Array(bytes)] },
      });
      const limit = { kind: "outcome", outcome: { ok: false, error: { code: "limit" } } };
      expect(
        await kv("run_one", [set("a", 8), set("b", 8), set("a", 9), set("b", 88), set("b", 87)], 100),
      ).toMatchObject([absent, absent, absent, limit, absent]);
      expect(
        await kv("run_one_b", [set("c", 1), { kind: "kv.delete", key: "b" }, set("c", 86)], 100),
      ).toMatchObject([limit, json(true), absent]);
    });

    test("refuse a key that has no UTF-8 of its own", async () => {
      const refusal = { kind: "outcome", outcome: { ok: false, error: { code: "invalid_arguments" } } };
      expect(
        await kv("run_one", [
          { kind: "kv.set", key: "\ud800", value: json(1) },
          { kind: "kv.list", prefix: "", after: "\udfff", limit: 1 },
        ]),
      ).toMatchObject([refusal, refusal]);
    });

    test("are taken back with the unit that holds them", async () => {
      await kv("run_one", [{ kind: "kv.set", key: "k", value: json("old") }]);
      const fence = await startedRun(store, "run_one_b", { flow: "one" });
      const change = local(0, 0, { kind: "kv.set", key: "k", value: json("new") });
      await refused(
        store,
        { fence, operations: [call(0, { effect: "local" }), change, timer(9)] },
        { reason: "conflict", at: 2 },
      );
      expect(await kv("run_one_c", [{ kind: "kv.get", key: "k" }])).toEqual([json("old")]);
    });

    test("belong to a call of effect local that has no outcome", async () => {
      const fence = await startedRun(store, "run_a");
      const get = local(0, 0, { kind: "kv.get", key: "k" });
      await refused(store, { fence, operations: [get] }, { reason: "conflict" });
      await refused(store, { fence, operations: [call(0), get] }, { reason: "conflict", at: 1 });
      await must(store, { fence, operations: [call(0, { effect: "local" }), get] });
      await refused(
        store,
        { fence, operations: [local(1, 0, { kind: "kv.get", key: "k" })] },
        { reason: "conflict" },
      );
    });
  });

  describe("signals", () => {
    const send = (signalId: string, value: unknown, name = "go"): Operation => ({
      kind: "sendSignal",
      runId: "run_a",
      name,
      value: json(value),
      signalId,
      at: 5,
    });
    const take = (order: number, position: number, name = "go"): Operation => ({
      kind: "takeSignal",
      order,
      guestClockMs: 1_000,
      position,
      name,
      at: 6,
    });
    const waiting = (name = "go") =>
      ({ effect: "wait", wait: { kind: "signal", name, timeoutMs: null } }) as const;

    test("wait for the call that takes them, oldest first, each once", async () => {
      const fence = await startedRun(store, "run_a");
      await must(store, {
        operations: [send("1", "first"), send("2", "second"), send("3", "other", "stop")],
      });
      await must(store, { fence, operations: [call(0, waiting()), call(1, waiting()), call(2, waiting())] });
      const taken = async (order: number): Promise<unknown> =>
        (await must(store, { fence, operations: [take(order, order)] })).results[0];
      expect(await taken(0)).toEqual({ kind: "signal", value: json("first") });
      expect(await taken(1)).toEqual({ kind: "signal", value: json("second") });
      expect(await taken(2)).toEqual({ kind: "signal", value: null });
      const deliveries = (await store.history("run_a"))?.deliveries;
      expect(deliveries).toMatchObject([
        { position: 0, outcome: ok("first") },
        { position: 1, outcome: ok("second") },
      ]);
      expect(await store.run("run_a")).toMatchObject({ nextOrder: 2 });
    });

    test("are sent once for each id, also when they were taken", async () => {
      const fence = await startedRun(store, "run_a");
      const sent = async (operation: Operation): Promise<unknown> =>
        (await must(store, { operations: [operation] })).results[0];
      expect(await sent(send("1", "a"))).toEqual({ kind: "sent", sent: true });
      expect(await sent(send("1", "b", "else"))).toEqual({ kind: "sent", sent: false });
      await must(store, { fence, operations: [call(0, waiting()), take(0, 0)] });
      expect(await sent(send("1", "c"))).toEqual({ kind: "sent", sent: false });
      expect(await sent({ ...send("1", "d"), runId: "run_none" } as Operation)).toEqual({
        kind: "sent",
        sent: false,
      });
    });

    test("are taken only by an open call that waits for them, in order", async () => {
      const fence = await startedRun(store, "run_a");
      await must(store, { operations: [send("1", "a")] });
      await must(store, { fence, operations: [call(0, waiting()), call(1, waiting("stop")), call(2)] });
      await refused(store, { fence, operations: [take(1, 0)] }, { reason: "conflict" });
      await refused(store, { fence, operations: [take(0, 1)] }, { reason: "conflict" });
      await refused(store, { fence, operations: [take(0, 2)] }, { reason: "conflict" });
      await refused(store, { fence, operations: [take(0, 3)] }, { reason: "conflict" });
      await refused(store, { fence, operations: [take(0, 0), take(1, 0)] }, { reason: "conflict", at: 1 });
      expect((await must(store, { fence, operations: [take(0, 0)] })).results).toEqual([
        { kind: "signal", value: json("a") },
      ]);
    });
  });

  describe("logs", () => {
    const line = (seq: number, text = `line ${seq}`) =>
      ({ seq, level: "info", guestTimeMs: 1_000.5 + seq, text }) as const;

    test("are stored once, and never with a gap", async () => {
      const fence = await startedRun(store, "run_a");
      const logs = (...lines: ReturnType<typeof line>[]): Unit => ({
        fence,
        operations: [{ kind: "logs", lines }],
      });
      await must(store, logs(line(0), line(1)));
      await must(store, logs(line(0, "changed"), line(1), line(2)));
      await must(store, logs());
      await refused(store, logs(line(4)), { reason: "conflict" });
      await refused(store, logs(line(3), line(5)), { reason: "conflict" });
      expect(await store.logs("run_a")).toEqual([line(0), line(1), line(2)]);
      expect(await store.run("run_a")).toMatchObject({ nextLog: 3 });
      expect(await store.logs("run_b")).toEqual([]);
    });

    test("hold no half character", async () => {
      const fence = await startedRun(store, "run_a");
      await must(store, { fence, operations: [{ kind: "logs", lines: [line(0, "cut \ud83d")] }] });
      expect(await store.logs("run_a")).toEqual([line(0, "cut \ufffd")]);
    });
  });

  describe("flows", () => {
    const add = (letter: string, flow = "watcher"): Operation => ({
      kind: "addVersion",
      version: sampleVersion(hash(letter), { flow }),
    });
    const decide = (
      letter: string,
      state: "approved" | "rejected" | "revoked",
      reason: string | null = null,
    ): Operation => ({
      kind: "decideVersion",
      flow: "watcher",
      hash: hash(letter),
      state,
      by: "op",
      reason,
      at: 50,
    });
    const states = async (): Promise<unknown> =>
      Object.fromEntries((await store.versions("watcher")).map((row) => [row.hash[0], row.state]));

    test("number their versions, each content once", async () => {
      const { results } = await must(store, {
        operations: [add("a"), add("b"), add("a"), add("a", "other")],
      });
      expect(results).toEqual([
        { kind: "version", number: 1, added: true },
        { kind: "version", number: 2, added: true },
        { kind: "version", number: 1, added: false },
        { kind: "version", number: 1, added: true },
      ]);
      const again = sampleVersion(hash("a"), { bundle: "something else" });
      await must(store, { operations: [{ kind: "addVersion", version: again }] });
      const row = await store.version("watcher", hash("a"));
      expect(row).toEqual({
        ...sampleVersion(hash("a")),
        number: 1,
        state: "installed",
        decidedAt: null,
        decidedBy: null,
        decisionReason: null,
      });
      const { bundle: _1, bundleMap: _2, sources: _3, ...short } = row ?? sampleVersion("");
      const [newest, oldest] = await store.versions("watcher");
      expect(newest).toMatchObject({ number: 2 });
      expect(oldest).toEqual(short);
      expect(await store.version("watcher", hash("c"))).toBeNull();
      expect((await store.flows()).map(({ flow }) => flow)).toEqual(["other", "watcher"]);
    });

    test("have at most one approved version", async () => {
      await must(store, { operations: [add("a"), add("b"), decide("a", "approved", "looks right")] });
      expect(await store.flow("watcher")).toMatchObject({ approvedHash: hash("a"), changedAt: 50 });
      await must(store, { operations: [decide("b", "approved")] });
      expect(await states()).toEqual({ a: "superseded", b: "approved" });
      expect(await store.version("watcher", hash("a"))).toMatchObject({
        decidedAt: 50,
        decidedBy: "op",
        decisionReason: "looks right",
      });
      await must(store, { operations: [decide("b", "revoked", "bad")] });
      expect(await store.flow("watcher")).toMatchObject({ approvedHash: null });
      await must(store, { operations: [decide("a", "approved"), decide("b", "rejected")] });
      expect(await states()).toEqual({ a: "approved", b: "rejected" });
      await refused(store, { operations: [decide("c", "approved")] }, { reason: "conflict" });
    });

    test("are enabled until somebody says otherwise", async () => {
      await must(store, { operations: [add("a")] });
      expect(await store.flow("watcher")).toEqual({
        flow: "watcher",
        enabled: true,
        disabledBy: null,
        disabledReason: null,
        approvedHash: null,
        violationsInARow: 0,
        changedAt: 900,
        nextFireAt: null,
      });
      const patch = {
        enabled: false,
        disabledBy: "flowcell",
        disabledReason: "violations",
        violationsInARow: 3,
        nextFireAt: 70.5,
        changedAt: 60,
      };
      await must(store, { operations: [{ kind: "flow", flow: "watcher", patch }] });
      expect(await store.flow("watcher")).toEqual({ flow: "watcher", approvedHash: null, ...patch });
      await refused(store, { operations: [{ kind: "flow", flow: "none", patch }] }, { reason: "conflict" });
      expect(await store.flow("none")).toBeNull();
    });
  });

  describe("events, audit and quarantine", () => {
    test("an event is handed out once", async () => {
      const event = { kind: "event", eventId: "e1", name: "price", value: json(1), at: 3 } as const;
      const { results } = await must(store, { operations: [event, event] });
      expect(results).toEqual([
        { kind: "event", added: true },
        { kind: "event", added: false },
      ]);
      expect((await must(store, { operations: [{ ...event, name: "other" }] })).results).toEqual([
        { kind: "event", added: false },
      ]);
    });

    test("audit is listed newest first", async () => {
      const row = { actor: "op", action: "flow.approve", flow: "watcher", runId: null, detail: "x" };
      const audit = [1, 2, 3].map((at) => ({ kind: "audit", row: { at, ...row } }) as const);
      await must(store, { operations: audit });
      expect(await store.audit(2)).toEqual([
        { at: 3, ...row },
        { at: 2, ...row },
      ]);
    });

    test("quarantine keeps what came for a run, known or not, finished or not", async () => {
      const fence = await startedRun(store, "run_a");
      await must(store, { fence, operations: [finish()] });
      const rows = [
        { runId: "run_a", position: 3, at: 1, reason: "late", outcome: ok("x", new Uint8Array(5_000)) },
        { runId: "run_none", position: 0, at: 2, reason: "unknown_call", outcome: null },
      ];
      await must(store, { operations: rows.map((row) => ({ kind: "quarantine", row }) as const) });
      expect(await store.quarantined(null)).toEqual(rows);
      expect(await store.quarantined("run_a")).toEqual(rows.slice(0, 1));
    });
  });

  describe("retention", () => {
    test("removes finished runs with all that is theirs, oldest first, and nothing else", async () => {
      const body = new Uint8Array(6_000).fill(3);
      for (const [runId, at] of [
        ["run_a", 300],
        ["run_b", 100],
        ["run_c", 200],
        ["run_d", 400],
      ] as const) {
        const fence = await startedRun(store, runId, { input: json(runId, body) });
        await must(store, {
          fence,
          operations: [
            call(0, { callId: `call_${runId}` }),
            { kind: "logs", lines: [{ seq: 0, level: "log", guestTimeMs: 1, text: runId }] },
            {
              kind: "sendSignal",
              runId,
              name: "go",
              value: json(1, body),
              signalId: "1",
              at: 1,
            },
            { kind: "quarantine", row: { runId, position: 0, at: 900, reason: "late", outcome: ok(1) } },
            deliver(0, 0, ok("body", body)),
            finish(at),
          ],
        });
      }
      await startedRun(store, "run_e");
      const stray = { runId: "run_none", position: 0, at: 250, reason: "late", outcome: null };
      await must(store, { operations: [{ kind: "quarantine", row: stray }] });

      expect(await store.retain({ finishedBefore: 400, runsMax: 2 })).toBe(2);
      expect((await store.runs({ limit: 9 })).map(({ runId }) => runId)).toEqual(["run_e", "run_d", "run_a"]);
      expect(await store.retain({ finishedBefore: 400, runsMax: 9 })).toBe(1);
      expect(await store.retain({ finishedBefore: 400, runsMax: 9 })).toBe(0);
      for (const runId of ["run_a", "run_b", "run_c"]) {
        expect(await store.history(runId)).toBeNull();
        expect(await store.logs(runId)).toEqual([]);
        expect(await store.callById(`call_${runId}`)).toBeNull();
      }
      expect((await store.quarantined(null)).map(({ runId }) => runId)).toEqual(["run_d"]);
      expect((await store.history("run_d"))?.deliveries).toMatchObject([{ outcome: ok("body", body) }]);
      expect(await store.run("run_e")).toMatchObject({ state: "pending" });
    });
  });

  describe("units", () => {
    test("happen together or not at all", async () => {
      const fence = await startedRun(store, "run_a");
      await refused(
        store,
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
      const { results } = await must(store, {
        operations: [
          { kind: "createRun", run: sampleRun("run_c", { deduplicationKey: "k" }) },
          { kind: "event", eventId: "e", name: "n", value: json(1), at: 1 },
        ],
      });
      expect(results).toEqual([
        { kind: "run", created: true, runId: "run_c" },
        { kind: "event", added: true },
      ]);
      await must(store, { fence, operations: [call(0, { callId: "call_x" })] });
    });

    test("are applied in the order of the calls, each whatever became of the others", async () => {
      const fence = await startedRun(store, "run_a");
      const answers = await Promise.all([
        store.commit({ fence, operations: [timer(0)] }),
        store.commit({ fence, operations: [timer(0)] }),
        store.commit({ fence, operations: [timer(1)] }),
        store.commit({ fence: { ...fence, owner: "x" }, operations: [timer(2)] }),
        store.commit({ fence, operations: [timer(2)] }),
      ]);
      expect(answers.map((answer) => (answer.ok ? "ok" : answer.reason))).toEqual([
        "ok",
        "conflict",
        "ok",
        "fenced",
        "ok",
      ]);
      expect(await store.run("run_a")).toMatchObject({ nextOrder: 3 });
    });

    test("are read by what is asked after them, without waiting for them", async () => {
      const fence = await startedRun(store, "run_a");
      const commit = store.commit({ fence, operations: [timer(0)] });
      expect(await store.run("run_a")).toMatchObject({ nextOrder: 1 });
      expect(await commit).toMatchObject({ ok: true });
    });

    test("are refused when they are malformed, with the place of the mistake", async () => {
      const fence = await startedRun(store, "run_a");
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
        await refused(store, unit, { reason: "conflict", at: 1 });
      }
    });

    test("and rows are copies: neither side sees what the other changes", async () => {
      const fence = await startedRun(store, "run_a");
      const bytes = new Uint8Array([1, 2, 3]);
      const given = ok("x", bytes);
      const commit = store.commit({ fence, operations: [call(0), deliver(0, 0, given)] });
      bytes.fill(9);
      expect(await commit).toMatchObject({ ok: true });
      const read = async (): Promise<Uint8Array | undefined> => {
        const delivery = (await store.history("run_a"))?.deliveries[0];
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
    const fence = await startedRun(store, "run_a");
    const last = store.commit({ fence, operations: [timer(0)] });
    const closed = store.close();
    expect(await last).toMatchObject({ ok: true });
    await closed;
    await store.close();
    await expect(store.commit({ operations: [] })).rejects.toThrow(StoreFailure);
    await expect(store.run("run_a")).rejects.toThrow(StoreFailure);
    await expect(store.stats()).rejects.toThrow(StoreFailure);
  });

  test("limits that nobody can mean are refused", async () => {
    for (const limit of [0, -1, 1.5, 10_001]) await expect(store.audit(limit)).rejects.toThrow(RangeError);
    for (const runsMax of [0, -1, 1.5])
      await expect(store.retain({ finishedBefore: 1, runsMax })).rejects.toThrow(RangeError);
    await expect(store.retain({ finishedBefore: Number.NaN, runsMax: 1 })).rejects.toThrow(RangeError);
  });

  test("stats count units", async () => {
    const before = await store.stats();
    await startedRun(store, "run_a");
    const after = await store.stats();
    expect(after.units - before.units).toBe(1);
    expect(after.lastError).toBeNull();
  });
}
