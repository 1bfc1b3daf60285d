// A process that ends at any unit of the journal, and the next one that goes on: the same outcome, every `once` effect once.
import { MemoryStore, type RunRow } from "@flowcell/journal";
import { encodeValue } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import { type Cut, cuttingStore } from "../testing/cutting-store.js";
import { Harness, newRun, resultOf, row } from "../testing/engine-harness.js";
import { StoodClock } from "../testing/hand-given.js";
import { reference, referenceResult, World } from "../testing/world.js";

const scripts = { reference };

/** Does what an operator would do who can look at the world. */
function operate(harness: Harness, world: World, runId: string): void {
  void harness.store.history(runId).then((history) => {
    for (const { position, unknownReason } of history?.calls ?? []) {
      if (unknownReason === null) continue;
      const happened = world.printed.has("p");
      harness.runner.reconcile(
        runId,
        position,
        happened
          ? { kind: "observed", outcome: { ok: true, value: encodeValue("printed p") } }
          : { kind: "not_applied" },
      );
    }
  });
}

interface Lived {
  readonly run: RunRow;
  readonly units: number;
  readonly reconciled: boolean;
}

/** The reference flow in processes that are cut off one after the other, then in one that is not. */
async function live(world: World, cuts: readonly Cut[]): Promise<Lived> {
  const store = new MemoryStore();
  const { runId } = newRun("reference");
  await store.commit({ operations: [{ kind: "createRun", run: newRun("reference", { runId }) }] });
  let units = 0;
  let reconciled = false;
  for (const cut of [...cuts, null]) {
    const cutting = cuttingStore(store, cut);
    const harness = new Harness({
      store: cutting.store,
      scripts,
      functions: world.functions(),
      suspendAfterMs: 5,
    });
    harness.runner.adopt(runId);
    const run = await harness.until(async () => {
      if (harness.storeFailures.length > 0) return "cut";
      const now = await store.run(runId);
      if (now?.status === "needs_reconcile") {
        reconciled = true;
        operate(harness, world, runId);
      }
      await store
        .commit({
          operations: [
            {
              kind: "sendSignal",
              runId,
              name: "go",
              value: encodeValue("went"),
              signalId: "one",
              at: Date.now(),
            },
          ],
        })
        .then((sent) => {
          if (sent.ok && sent.results[0]?.kind === "sent" && sent.results[0].sent)
            harness.runner.signalled(runId, "go");
        });
      // The process before may have died with the end of the run on disk, and nobody told.
      return now?.state === "finished" && now;
    });
    units = cutting.units();
    await harness.runner.close();
    expect(harness.failures).toEqual([]);
    expect(harness.runner.active).toBe(0);
    if (run !== "cut") return { run, units, reconciled };
  }
  const run = await store.run(runId);
  if (run === null) throw new Error("the run is gone");
  return { run, units, reconciled };
}

function expectAllowed(world: World, run: RunRow): void {
  expect(run).toMatchObject({ state: "finished", status: "completed" });
  expect(resultOf(run)).toEqual(referenceResult);
  expect(world.printed).toEqual(new Map([["p", 1]]));
  expect(world.appended).toEqual(new Map([["q", 1]]));
  expect([...world.orders.keys()]).toHaveLength(2);
}

describe("the reference flow", () => {
  test("uncut", async () => {
    const world = new World();
    const { run } = await live(world, []);
    expectAllowed(world, run);
    expect([...world.orders.values()]).toEqual([1, 1]);
  });

  test.each([
    ["lost", false],
    ["kept, and the process not told", true],
  ])("cut at every unit, the unit %s: ends as it could have ended uncut", async (_, kept) => {
    const { units } = await live(new World(), []);
    expect(units).toBeGreaterThan(20);
    let reconciled = 0;
    for (let at = 0; at < units; at++) {
      const world = new World();
      const lived = await live(world, [{ at, kept }]);
      expectAllowed(world, lived.run);
      if (lived.reconciled) reconciled += 1;
    }
    // Only while the effect of which nothing is known was under way.
    expect(reconciled).toBeGreaterThan(0);
    expect(reconciled).toBeLessThan(units / 2);
  });

  test("cut again and again, every few units", async () => {
    for (let every = 2; every < 6; every++) {
      const world = new World();
      const cuts = Array.from({ length: 60 }, (_, index) => ({ at: every, kept: index % 2 === 0 }));
      const { run } = await live(world, cuts);
      expectAllowed(world, run);
    }
  });
});

describe("two runners on one store", () => {
  test("the one that claimed first is fenced, stops at once and writes nothing more", async () => {
    const store = new MemoryStore();
    let begun = 0;
    let answer: (value: unknown) => void = () => undefined;
    const functions = [
      row("slow", "read", () => {
        begun += 1;
        return begun > 1 ? "read" : new Promise((resolve) => (answer = resolve));
      }),
    ];
    const both = { slow: (host: Parameters<typeof reference>[0]) => host.call("slow") };
    const old = new Harness({ store, functions, scripts: both });
    const runId = await old.start("slow");
    await old.until(() => begun === 1);
    const next = new Harness({ store, functions, scripts: both });
    next.runner.adopt(runId);
    const run = await next.end(runId);
    expect(resultOf(run)).toBe("read");
    answer("late");
    await old.until(() => old.runner.active === 0);
    expect(old.finished).toEqual([]);
    expect(old.failures).toEqual([]);
    expect(old.scripted.running).toEqual([]);
    expect((await next.history(runId)).deliveries).toHaveLength(1);
    await old.runner.close();
    await next.runner.close();
  });

  test("a run that sleeps with the old one is not woken by it any more", async () => {
    const store = new MemoryStore();
    const sleeps = { sleeps: (host: Parameters<typeof reference>[0]) => host.call("sleep", 120) };
    const clock = new StoodClock();
    const old = new Harness({ store, scripts: sleeps, suspendAfterMs: 0, now: clock.now });
    const runId = await old.start("sleeps");
    await old.rest(runId);
    const next = new Harness({ store, scripts: sleeps, suspendAfterMs: 0, now: clock.now });
    next.runner.adopt(runId);
    await next.until(async () => (await store.run(runId))?.generation === 2);
    clock.pass(120);
    expect(await next.end(runId)).toMatchObject({ status: "completed" });
    await old.until(() => old.runner.active === 0);
    expect([old.finished, old.failures]).toEqual([[], []]);
    await old.runner.close();
    await next.runner.close();
  });

  test("a run that is finished or not there is not driven", async () => {
    const store = new MemoryStore();
    const old = new Harness({ store, scripts: { quick: async () => 1 } });
    const runId = await old.start("quick");
    await old.end(runId);
    const next = new Harness({ store, scripts: {} });
    next.runner.adopt(runId);
    next.runner.adopt("run_none");
    await next.until(() => next.runner.active === 0);
    expect(next.failures).toEqual([]);
    await old.runner.close();
    await next.runner.close();
  });
});

describe("a replay that differs", () => {
  test("ends the run as replay_diverged, with both sides in the error", async () => {
    const store = new MemoryStore();
    const old = new Harness({
      store,
      scripts: {
        flow: async (host) => [await host.call("kv.set", "a", 1), await host.call("signal.wait", "go")],
      },
    });
    const runId = await old.start("flow");
    await old.rest(runId);
    await old.runner.close();
    const next = new Harness({
      store,
      scripts: {
        flow: async (host) => [await host.call("kv.set", "b", 1), await host.call("signal.wait", "go")],
      },
    });
    next.runner.adopt(runId);
    await next.signal(runId, "go", 1);
    const run = await next.end(runId);
    expect(run).toMatchObject({ status: "replay_diverged", reason: "call" });
    expect(JSON.parse(run.errorJson ?? "")).toMatchObject({
      name: "ReplayDiverged",
      position: 0,
      expected: { kind: "call", name: "kv.set" },
      actual: { kind: "call", name: "kv.set" },
    });
    await next.runner.close();
  });
});
