/** What is held of a run, and what a run is: a part of the suite in ../conformance.ts, which says who calls it. */

import { describe, expect, test } from "vitest";
import type { Operation, Store, Unit } from "../../src/store.js";
import {
  call,
  deliver,
  finish,
  json,
  local,
  must,
  sampleRun,
  startedRun,
  timer,
} from "../../src/testing/samples.js";
import { refused, type Stage } from "./stage.js";

export function runsConform(on: Stage): void {
  describe("the hold on a run", () => {
    test("only the owner of the latest generation changes a run", async () => {
      const fence = await startedRun(on.store, "run_a");
      await must(on.store, { fence, operations: [call(0)] });
      await must(on.store, { operations: [{ kind: "claim", runId: "run_a", owner: "owner-2" }] });
      const unit = { operations: [deliver(0, 0)] };
      await refused(on.store, { fence, ...unit }, { reason: "fenced", at: 0 });
      await refused(on.store, { fence: { ...fence, generation: 2 }, ...unit }, { reason: "fenced" });
      await refused(on.store, { fence: { ...fence, owner: "owner-2" }, ...unit }, { reason: "fenced" });
      await must(on.store, { fence: { runId: "run_a", owner: "owner-2", generation: 2 }, ...unit });
    });

    test("every operation on a run is refused without the hold", async () => {
      const fence = await startedRun(on.store, "run_a");
      const waiting = { wait: { kind: "signal", name: "go", timeoutMs: null }, effect: "wait" } as const;
      await must(on.store, {
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
        await refused(on.store, { fence: stranger, operations: [operation] }, { reason: "fenced", at: 0 });
        await refused(on.store, { operations: [operation] }, { reason: "conflict", at: 0 });
        await refused(
          on.store,
          { fence: { ...fence, runId: "run_none" }, operations: [operation] },
          { reason: "fenced" },
        );
      }
    });

    test("a claim takes an unfinished run under the next generation", async () => {
      const fence = await startedRun(on.store, "run_a");
      const claim = { kind: "claim", runId: "run_a", owner: "owner-1" } as const;
      const { results } = await must(on.store, { operations: [claim] });
      expect(results).toEqual([{ kind: "claim", generation: 2 }]);
      await must(on.store, { fence: { ...fence, generation: 2 }, operations: [finish()] });
      await refused(on.store, { operations: [claim] }, { reason: "fenced" });
      await refused(on.store, { operations: [{ ...claim, runId: "run_none" }] }, { reason: "fenced" });
    });

    test("a claim inside a unit ends the hold that the unit began with", async () => {
      const fence = await startedRun(on.store, "run_a");
      const claim = { kind: "claim", runId: "run_a", owner: "owner-2" } as const;
      await refused(
        on.store,
        { fence, operations: [timer(0), claim, timer(1)] },
        { reason: "fenced", at: 2 },
      );
    });

    test("a unit without operations is refused without the hold", async () => {
      const fence = await startedRun(on.store, "run_a");
      expect(await on.store.commit({ fence, operations: [] })).toEqual({ ok: true, results: [] });
      await refused(
        on.store,
        { fence: { ...fence, generation: 7 }, operations: [] },
        { reason: "fenced", at: 0 },
      );
    });
  });

  describe("runs", () => {
    test("start pending, held by nobody, with what they were made of", async () => {
      const run = sampleRun("run_a", { deduplicationKey: "k", input: json(1, new Uint8Array(9_000)) });
      await must(on.store, { operations: [{ kind: "createRun", run }] });
      expect(await on.store.run("run_a")).toEqual({
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
      expect(await on.store.run("run_b")).toBeNull();
      expect(await on.store.history("run_b")).toBeNull();
    });

    test("are made once for each deduplication key, also after removal", async () => {
      const make = async (runId: string, flow: string): Promise<unknown> => {
        const run = sampleRun(runId, { flow, deduplicationKey: "same" });
        return (await must(on.store, { operations: [{ kind: "createRun", run }] })).results[0];
      };
      expect(await make("run_a", "one")).toEqual({ kind: "run", created: true, runId: "run_a" });
      expect(await make("run_b", "one")).toEqual({ kind: "run", created: false, runId: "run_a" });
      expect(await on.store.run("run_b")).toBeNull();
      expect(await make("run_c", "two")).toEqual({ kind: "run", created: true, runId: "run_c" });
      await must(on.store, { operations: [{ kind: "claim", runId: "run_a", owner: "o" }] });
      await must(on.store, {
        fence: { runId: "run_a", owner: "o", generation: 1 },
        operations: [finish(10)],
      });
      expect(await on.store.retain({ finishedBefore: 11, runsMax: 10 })).toBe(1);
      expect(await on.store.run("run_a")).toBeNull();
      expect(await make("run_d", "one")).toEqual({ kind: "run", created: false, runId: "run_a" });
    });

    test("are not made twice under one id", async () => {
      await startedRun(on.store, "run_a");
      const again = { kind: "createRun", run: sampleRun("run_a") } as const;
      await refused(on.store, { operations: [again] }, { reason: "conflict" });
    });

    test("take patches, each state with the statuses it can have", async () => {
      const fence = await startedRun(on.store, "run_a");
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
        await refused(on.store, patch(wrong), { reason: "conflict" });
      }
      await must(on.store, patch({ state: "suspended", status: "needs_reconcile", dueAt: 4, changedAt: 9 }));
      await must(on.store, patch({ state: "running", status: null, dueAt: null, warningsJson: '["w"]' }));
      await must(on.store, patch({ endOrder: 0, endStatus: "script_error", cpuUs: 12.5 }));
      await must(on.store, patch({}));
      expect(await on.store.run("run_a")).toMatchObject({
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
      const fence = await startedRun(on.store, "run_a");
      const wait = { kind: "signal", name: "go", timeoutMs: null } as const;
      await must(on.store, { fence, operations: [call(0), call(1, { effect: "wait", wait })] });
      await must(on.store, { fence, operations: [finish()] });
      expect(await on.store.run("run_a")).toMatchObject({ status: "completed", result: json("done") });
      for (const operation of [deliver(0, 0), timer(0), call(2), finish()]) {
        await refused(on.store, { fence, operations: [operation] }, { reason: "fenced" });
      }
      const signal = {
        kind: "sendSignal",
        runId: "run_a",
        name: "go",
        value: json(1),
        signalId: "s",
        at: 1,
      } as const;
      expect((await must(on.store, { operations: [signal] })).results).toEqual([
        { kind: "sent", sent: false },
      ]);
    });

    test("are not changed by what follows their end in the same unit", async () => {
      const fence = await startedRun(on.store, "run_a");
      await refused(on.store, { fence, operations: [finish(), timer(0)] }, { reason: "fenced", at: 1 });
      await must(on.store, { fence, operations: [timer(0), finish()] });
    });

    test("are listed newest first in pages, by flow, state and status", async () => {
      for (let at = 0; at < 7; at++) {
        // Clocks of hosts go back: the order of making counts.
        const changes = { flow: at % 2 === 0 ? "even" : "odd", createdAt: 1_000 - at };
        const fence = await startedRun(on.store, `run_${at}`, changes);
        if (at < 4) await must(on.store, { fence, operations: [finish()] });
      }
      const ids = async (query: Parameters<Store["runs"]>[0]): Promise<string[]> =>
        (await on.store.runs(query)).map(({ runId }) => runId);
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
      expect((await on.store.unfinished()).map(({ runId }) => runId)).toEqual(["run_4", "run_5", "run_6"]);
      for (const limit of [0, 1001, 1.5]) await expect(on.store.runs({ limit })).rejects.toThrow(RangeError);
    });
  });
}
