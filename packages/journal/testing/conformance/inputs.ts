/** What comes from the script and from outside: keys and values, signals, log lines: a part of the suite in ../conformance.ts, which says who calls it. */

import type { EncodedValue } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import type { Operation, Unit } from "../../src/store.js";
import { call, json, local, must, ok, startedRun, timer } from "../../src/testing/samples.js";
import { refused, type Stage } from "./stage.js";

export function inputsConform(on: Stage): void {
  describe("local operations", () => {
    /** Carries operations out as calls of one run and answers their outcomes. */
    async function kv(
      runId: string,
      operations: readonly Parameters<typeof local>[2][],
      bytesMax?: number,
    ): Promise<unknown[]> {
      const flow = runId.split("_")[1] ?? "";
      const fence = await startedRun(on.store, runId, { flow });
      const outcomes: unknown[] = [];
      for (const [at, operation] of operations.entries()) {
        const unit = {
          fence,
          operations: [call(at, { effect: "local" }), local(at, at, operation, bytesMax)],
        };
        const outcome = (await must(on.store, unit)).results[1];
        outcomes.push(outcome?.kind === "outcome" && outcome.outcome.ok ? outcome.outcome.value : outcome);
      }
      const recorded = (await on.store.history(runId))?.deliveries.map((one) =>
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
      const fence = await startedRun(on.store, "run_one_b", { flow: "one" });
      const change = local(0, 0, { kind: "kv.set", key: "k", value: json("new") });
      await refused(
        on.store,
        { fence, operations: [call(0, { effect: "local" }), change, timer(9)] },
        { reason: "conflict", at: 2 },
      );
      expect(await kv("run_one_c", [{ kind: "kv.get", key: "k" }])).toEqual([json("old")]);
    });

    test("belong to a call of effect local that has no outcome", async () => {
      const fence = await startedRun(on.store, "run_a");
      const get = local(0, 0, { kind: "kv.get", key: "k" });
      await refused(on.store, { fence, operations: [get] }, { reason: "conflict" });
      await refused(on.store, { fence, operations: [call(0), get] }, { reason: "conflict", at: 1 });
      await must(on.store, { fence, operations: [call(0, { effect: "local" }), get] });
      await refused(
        on.store,
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
      const fence = await startedRun(on.store, "run_a");
      await must(on.store, {
        operations: [send("1", "first"), send("2", "second"), send("3", "other", "stop")],
      });
      await must(on.store, {
        fence,
        operations: [call(0, waiting()), call(1, waiting()), call(2, waiting())],
      });
      const taken = async (order: number): Promise<unknown> =>
        (await must(on.store, { fence, operations: [take(order, order)] })).results[0];
      expect(await taken(0)).toEqual({ kind: "signal", value: json("first") });
      expect(await taken(1)).toEqual({ kind: "signal", value: json("second") });
      expect(await taken(2)).toEqual({ kind: "signal", value: null });
      const deliveries = (await on.store.history("run_a"))?.deliveries;
      expect(deliveries).toMatchObject([
        { position: 0, outcome: ok("first") },
        { position: 1, outcome: ok("second") },
      ]);
      expect(await on.store.run("run_a")).toMatchObject({ nextOrder: 2 });
    });

    test("are sent once for each id, also when they were taken", async () => {
      const fence = await startedRun(on.store, "run_a");
      const sent = async (operation: Operation): Promise<unknown> =>
        (await must(on.store, { operations: [operation] })).results[0];
      expect(await sent(send("1", "a"))).toEqual({ kind: "sent", sent: true });
      expect(await sent(send("1", "b", "else"))).toEqual({ kind: "sent", sent: false });
      await must(on.store, { fence, operations: [call(0, waiting()), take(0, 0)] });
      expect(await sent(send("1", "c"))).toEqual({ kind: "sent", sent: false });
      expect(await sent({ ...send("1", "d"), runId: "run_none" } as Operation)).toEqual({
        kind: "sent",
        sent: false,
      });
    });

    test("are taken only by an open call that waits for them, in order", async () => {
      const fence = await startedRun(on.store, "run_a");
      await must(on.store, { operations: [send("1", "a")] });
      await must(on.store, { fence, operations: [call(0, waiting()), call(1, waiting("stop")), call(2)] });
      await refused(on.store, { fence, operations: [take(1, 0)] }, { reason: "conflict" });
      await refused(on.store, { fence, operations: [take(0, 1)] }, { reason: "conflict" });
      await refused(on.store, { fence, operations: [take(0, 2)] }, { reason: "conflict" });
      await refused(on.store, { fence, operations: [take(0, 3)] }, { reason: "conflict" });
      await refused(on.store, { fence, operations: [take(0, 0), take(1, 0)] }, { reason: "conflict", at: 1 });
      expect((await must(on.store, { fence, operations: [take(0, 0)] })).results).toEqual([
        { kind: "signal", value: json("a") },
      ]);
    });
  });

  describe("logs", () => {
    const line = (seq: number, text = `line ${seq}`) =>
      ({ seq, level: "info", guestTimeMs: 1_000.5 + seq, text }) as const;

    test("are stored once, and never with a gap", async () => {
      const fence = await startedRun(on.store, "run_a");
      const logs = (...lines: ReturnType<typeof line>[]): Unit => ({
        fence,
        operations: [{ kind: "logs", lines }],
      });
      await must(on.store, logs(line(0), line(1)));
      await must(on.store, logs(line(0, "changed"), line(1), line(2)));
      await must(on.store, logs());
      await refused(on.store, logs(line(4)), { reason: "conflict" });
      await refused(on.store, logs(line(3), line(5)), { reason: "conflict" });
      expect(await on.store.logs("run_a")).toEqual([line(0), line(1), line(2)]);
      expect(await on.store.run("run_a")).toMatchObject({ nextLog: 3 });
      expect(await on.store.logs("run_b")).toEqual([]);
    });

    test("hold no half character", async () => {
      const fence = await startedRun(on.store, "run_a");
      await must(on.store, { fence, operations: [{ kind: "logs", lines: [line(0, "cut \ud83d")] }] });
      expect(await on.store.logs("run_a")).toEqual([line(0, "cut \ufffd")]);
    });
  });
}
