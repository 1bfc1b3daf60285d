/** Flows with their versions, events, audit, quarantine, and what retention removes: a part of the suite in ../conformance.ts, which says who calls it. */

import { describe, expect, test } from "vitest";
import type { Operation } from "../../src/store.js";
import {
  call,
  deliver,
  finish,
  json,
  must,
  ok,
  sampleVersion,
  startedRun,
} from "../../src/testing/samples.js";
import { hash, refused, type Stage } from "./stage.js";

export function flowsConform(on: Stage): void {
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
      Object.fromEntries((await on.store.versions("watcher")).map((row) => [row.hash[0], row.state]));

    test("number their versions, each content once", async () => {
      const { results } = await must(on.store, {
        operations: [add("a"), add("b"), add("a"), add("a", "other")],
      });
      expect(results).toEqual([
        { kind: "version", number: 1, added: true },
        { kind: "version", number: 2, added: true },
        { kind: "version", number: 1, added: false },
        { kind: "version", number: 1, added: true },
      ]);
      const again = sampleVersion(hash("a"), { bundle: "something else" });
      await must(on.store, { operations: [{ kind: "addVersion", version: again }] });
      const row = await on.store.version("watcher", hash("a"));
      expect(row).toEqual({
        ...sampleVersion(hash("a")),
        number: 1,
        state: "installed",
        decidedAt: null,
        decidedBy: null,
        decisionReason: null,
      });
      const { bundle: _1, bundleMap: _2, sources: _3, ...short } = row ?? sampleVersion("");
      const [newest, oldest] = await on.store.versions("watcher");
      expect(newest).toMatchObject({ number: 2 });
      expect(oldest).toEqual(short);
      expect(await on.store.version("watcher", hash("c"))).toBeNull();
      expect((await on.store.flows()).map(({ flow }) => flow)).toEqual(["other", "watcher"]);
    });

    test("have at most one approved version", async () => {
      await must(on.store, { operations: [add("a"), add("b"), decide("a", "approved", "looks right")] });
      expect(await on.store.flow("watcher")).toMatchObject({ approvedHash: hash("a"), changedAt: 50 });
      await must(on.store, { operations: [decide("b", "approved")] });
      expect(await states()).toEqual({ a: "superseded", b: "approved" });
      expect(await on.store.version("watcher", hash("a"))).toMatchObject({
        decidedAt: 50,
        decidedBy: "op",
        decisionReason: "looks right",
      });
      await must(on.store, { operations: [decide("b", "revoked", "bad")] });
      expect(await on.store.flow("watcher")).toMatchObject({ approvedHash: null });
      await must(on.store, { operations: [decide("a", "approved"), decide("b", "rejected")] });
      expect(await states()).toEqual({ a: "approved", b: "rejected" });
      await refused(on.store, { operations: [decide("c", "approved")] }, { reason: "conflict" });
    });

    test("are enabled until somebody says otherwise", async () => {
      await must(on.store, { operations: [add("a")] });
      expect(await on.store.flow("watcher")).toEqual({
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
      await must(on.store, { operations: [{ kind: "flow", flow: "watcher", patch }] });
      expect(await on.store.flow("watcher")).toEqual({ flow: "watcher", approvedHash: null, ...patch });
      await refused(
        on.store,
        { operations: [{ kind: "flow", flow: "none", patch }] },
        { reason: "conflict" },
      );
      expect(await on.store.flow("none")).toBeNull();
    });
  });

  describe("events, audit and quarantine", () => {
    test("an event is handed out once", async () => {
      const event = { kind: "event", eventId: "e1", name: "price", value: json(1), at: 3 } as const;
      const { results } = await must(on.store, { operations: [event, event] });
      expect(results).toEqual([
        { kind: "event", added: true },
        { kind: "event", added: false },
      ]);
      expect((await must(on.store, { operations: [{ ...event, name: "other" }] })).results).toEqual([
        { kind: "event", added: false },
      ]);
    });

    test("audit is listed newest first", async () => {
      const row = { actor: "op", action: "flow.approve", flow: "watcher", runId: null, detail: "x" };
      const audit = [1, 2, 3].map((at) => ({ kind: "audit", row: { at, ...row } }) as const);
      await must(on.store, { operations: audit });
      expect(await on.store.audit(2)).toEqual([
        { at: 3, ...row },
        { at: 2, ...row },
      ]);
    });

    test("quarantine keeps what came for a run, known or not, finished or not", async () => {
      const fence = await startedRun(on.store, "run_a");
      await must(on.store, { fence, operations: [finish()] });
      const rows = [
        { runId: "run_a", position: 3, at: 1, reason: "late", outcome: ok("x", new Uint8Array(5_000)) },
        { runId: "run_none", position: 0, at: 2, reason: "unknown_call", outcome: null },
      ];
      await must(on.store, { operations: rows.map((row) => ({ kind: "quarantine", row }) as const) });
      expect(await on.store.quarantined(null)).toEqual(rows);
      expect(await on.store.quarantined("run_a")).toEqual(rows.slice(0, 1));
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
        const fence = await startedRun(on.store, runId, { input: json(runId, body) });
        await must(on.store, {
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
      await startedRun(on.store, "run_e");
      const stray = { runId: "run_none", position: 0, at: 250, reason: "late", outcome: null };
      await must(on.store, { operations: [{ kind: "quarantine", row: stray }] });

      expect(await on.store.retain({ finishedBefore: 400, runsMax: 9, flow: "nobody's" })).toBe(0);
      expect(await on.store.retain({ finishedBefore: 400, runsMax: 2 })).toBe(2);
      expect((await on.store.runs({ limit: 9 })).map(({ runId }) => runId)).toEqual([
        "run_e",
        "run_d",
        "run_a",
      ]);
      expect(await on.store.retain({ finishedBefore: 400, runsMax: 9 })).toBe(1);
      expect(await on.store.retain({ finishedBefore: 400, runsMax: 9 })).toBe(0);
      for (const runId of ["run_a", "run_b", "run_c"]) {
        expect(await on.store.history(runId)).toBeNull();
        expect(await on.store.logs(runId)).toEqual([]);
        expect(await on.store.callById(`call_${runId}`)).toBeNull();
      }
      expect((await on.store.quarantined(null)).map(({ runId }) => runId)).toEqual(["run_d"]);
      expect((await on.store.history("run_d"))?.deliveries).toMatchObject([{ outcome: ok("body", body) }]);
      expect(await on.store.run("run_e")).toMatchObject({ state: "pending" });
    });

    test("removes few long runs at a time, and always one", async () => {
      for (const [runId, lines] of [
        ["run_a", 25_000],
        ["run_b", 12_000],
        ["run_c", 12_000],
        ["run_d", 10],
        ["run_e", 10],
      ] as const) {
        const fence = await startedRun(on.store, runId);
        for (let first = 0; first < lines; first += 5_000) {
          const block = Array.from({ length: Math.min(5_000, lines - first) }, (_, index) => ({
            seq: first + index,
            level: "log" as const,
            guestTimeMs: 1,
            text: "x",
          }));
          await must(on.store, { fence, operations: [{ kind: "logs", lines: block }] });
        }
        await must(on.store, { fence, operations: [finish(runId.charCodeAt(4))] });
      }
      const removed: number[] = [];
      for (let last = -1; last !== 0; removed.push(last))
        last = await on.store.retain({ finishedBefore: 400, runsMax: 9 });
      expect(removed).toEqual([1, 1, 3, 0]);
      expect(await on.store.runs({ limit: 9 })).toEqual([]);
    });
  });
}
