// The runner with a scripted pool and a store in memory: effects, suspension, waits, turns.
import { flowFunctions } from "@flowcell/host";
import { MemoryStore } from "@flowcell/journal";
import { decodeValue, encodeValue } from "@flowcell/protocol";
import { afterEach, describe, expect, test } from "vitest";
import { Harness, type HarnessOptions, newRun, resultOf, row } from "../testing/engine-harness.js";
import { HandGiven, StoodClock } from "../testing/hand-given.js";
import type { ScriptHost } from "../testing/scripted-pool.js";
import { runOutcome } from "./run-outcome.js";

const made: Harness[] = [];

function harness(options: HarnessOptions): Harness {
  const one = new Harness(options);
  made.push(one);
  return one;
}

afterEach(async () => {
  for (const one of made.splice(0)) {
    await one.runner.close();
    expect(one.failures).toEqual([]);
    expect(one.scripted.running).toEqual([]);
  }
});

/** An answer that the test gives when it likes. */
function later<Value>(): { readonly promise: Promise<Value>; resolve(value: Value): void } {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: (value) => resolve(value) };
}

describe("a run", () => {
  test("completes with the script's value, its calls and its logs on record", async () => {
    const seen: unknown[] = [];
    const one = harness({
      functions: [
        row("look", "read", ([what]) => `saw ${what}`),
        row("send", "keyed", (args, { idempotencyKey, runId }) => seen.push([args, idempotencyKey, runId])),
        row("print", "once", () => "printed"),
      ],
      scripts: {
        all: async (host, input) => {
          host.log("begin");
          const looked = await host.call("look", input);
          await host.call("kv.set", "k", looked);
          await host.call("send", 1);
          const printed = await host.call("print");
          await host.call("sleep", 5);
          await host.sleep(5);
          return [looked, await host.call("kv.get", "k"), printed];
        },
      },
    });
    const runId = await one.start("all", "it");
    const run = await one.end(runId);
    expect(run).toMatchObject({
      state: "finished",
      status: "completed",
      activations: 1,
      fingerprint: "engine-1",
    });
    expect(run.cpuUs).toBe(2000);
    expect(run.confinementJson).toBe('{"tier":"test"}');
    expect(resultOf(run)).toEqual(["saw it", "saw it", "printed"]);
    expect(seen).toEqual([[[1], `${runId}.2`, runId]]);
    const { calls, deliveries } = await one.history(runId);
    expect(calls.map(({ name, effect }) => `${name} ${effect}`)).toEqual([
      "look read",
      "kv.set local",
      "send keyed",
      "print once",
      "sleep wait",
      "kv.get local",
    ]);
    expect(deliveries.map(({ kind }) => kind)).toEqual([
      "call",
      "call",
      "call",
      "call",
      "call",
      "timer",
      "call",
    ]);
    expect((await one.store.logs(runId)).map(({ text }) => text)).toEqual(["begin"]);
    expect(one.runner.active).toBe(0);
  });

  test("an error of a handler reaches the script, which may catch it; one that it does not catch ends the run, mapped", async () => {
    const one = harness({
      functions: [
        row("bad", "read", () => {
          throw new Error("no luck");
        }),
      ],
      scripts: {
        caught: (host) => host.call("bad").catch((error: Error) => error.message),
        uncaught: (host) => host.call("bad"),
      },
    });
    expect(resultOf(await one.end(await one.start("caught")))).toBe("no luck");
    const run = await one.end(await one.start("uncaught"));
    expect(run).toMatchObject({ status: "script_error", reason: "upstream" });
    expect(JSON.parse(run.errorJson ?? "")).toMatchObject({ code: "upstream", message: "mapped: no luck" });
  });

  test("arguments that a row refuses are answered without an effect, and are on record", async () => {
    const one = harness({
      scripts: { wrong: (host) => host.call("kv.get").catch((error: Error) => error.message) },
    });
    const runId = await one.start("wrong");
    expect(resultOf(await one.end(runId))).toContain("takes at least 1 argument");
    expect((await one.history(runId)).calls).toMatchObject([{ name: "kv.get", attempts: 0 }]);
  });

  test("a row that waits by a handler of its own is carried out by it", async () => {
    const one = harness({
      functions: [row("await", "wait", async () => "came")],
      scripts: { one: (host) => host.call("await") },
    });
    expect(resultOf(await one.end(await one.start("one")))).toBe("came");
  });

  test("what prepare answers is recorded with the intent; what it refuses is the call's outcome", async () => {
    const one = harness({
      functions: [
        row("noted", "once", () => "done", { prepare: async () => ({ size: 7 }) }),
        row("refused", "once", () => "done", {
          prepare: () => {
            throw new Error("nothing there");
          },
        }),
      ],
      scripts: {
        both: async (host) => [
          await host.call("noted"),
          await host.call("refused").catch((error: Error) => error.message),
        ],
      },
    });
    const runId = await one.start("both");
    expect(resultOf(await one.end(runId))).toEqual(["done", "nothing there"]);
    expect((await one.history(runId)).calls).toMatchObject([
      { note: { size: 7 }, attempts: 1 },
      { note: null, effect: "once", attempts: 0 },
    ]);
  });
});

describe("a suspended run", () => {
  const sleeper = async (host: ScriptHost): Promise<unknown> => {
    const first = await host.call("look");
    await host.call("sleep", 40);
    return [first, await host.call("look")];
  };

  test("holds no worker, and goes on by replay when its time has come", async () => {
    let looks = 0;
    const clock = new StoodClock();
    const one = harness({
      suspendAfterMs: 0,
      now: clock.now,
      functions: [row("look", "read", () => ++looks)],
      scripts: { sleeper },
    });
    const runId = await one.start("sleeper");
    const rest = await one.rest(runId);
    expect(rest).toMatchObject({ state: "suspended", status: "suspended", reason: "waiting" });
    expect(one.scripted.running).toEqual([]);
    clock.pass(40);
    const run = await one.end(runId);
    expect(resultOf(run)).toEqual([1, 2]);
    expect(run.activations).toBe(2);
    expect(looks).toBe(2);
    expect(one.scripted.cells.map(({ request }) => request.replayCpuMs)).toEqual([1000, 1004]);
  });

  test("timers count on over a suspension", async () => {
    const clock = new StoodClock();
    const one = harness({
      suspendAfterMs: 0,
      now: clock.now,
      scripts: {
        timers: async (host) => {
          const before = host.now();
          await host.sleep(30);
          await host.sleep(30);
          return host.now() - before;
        },
      },
    });
    const runId = await one.start("timers");
    await one.rest(runId);
    clock.pass(30);
    await one.rest(runId, 2);
    clock.pass(30);
    expect(resultOf(await one.end(runId))).toBe(60);
  });

  test.each([
    ["a run that sleeps", 0],
    ["a run that has its worker", 60_000],
  ])(
    "a clock that is set back an hour keeps no timer of %s waiting for an hour",
    async (_, suspendAfterMs) => {
      let offsetMs = 0;
      const one = harness({
        suspendAfterMs,
        now: () => Date.now() + offsetMs,
        scripts: {
          timer: async (host) => {
            await host.sleep(1_500);
            await host.sleep(1_500);
            return await host.call("sleep", 10);
          },
        },
      });
      const runId = await one.start("timer");
      await one.until(
        async () => (await one.store.run(runId))?.state === (suspendAfterMs === 0 ? "suspended" : "running"),
      );
      offsetMs -= 3_600_000;
      expect(await one.end(runId)).toMatchObject({ status: "completed" });
    },
  );

  test("a signal wakes it; one that was sent before it waited is there already; each is taken once", async () => {
    const one = harness({
      scripts: {
        signals: async (host) => [
          await host.call("signal.wait", "go"),
          await host.call("signal.wait", "go"),
          await host.call("signal.wait", "stop"),
        ],
      },
    });
    const run = newRun("signals");
    await one.store.commit({ operations: [{ kind: "createRun", run }] });
    await one.signal(run.runId, "go", 1);
    one.runner.adopt(run.runId);
    await one.rest(run.runId);
    expect((await one.history(run.runId)).deliveries).toHaveLength(1);
    await one.signal(run.runId, "other");
    await one.signal(run.runId, "go", 2);
    await one.until(async () => (await one.history(run.runId)).calls.length === 3);
    await one.signal(run.runId, "stop", 3);
    expect(resultOf(await one.end(run.runId))).toEqual([1, 2, 3]);
  });

  test("a wait that is not ended in time fails with timeout", async () => {
    const one = harness({
      suspendAfterMs: 0,
      scripts: {
        timeout: (host) =>
          host.call("signal.wait", "go", { timeoutMs: 20 }).catch((error: { code: string }) => error.code),
      },
    });
    expect(resultOf(await one.end(await one.start("timeout")))).toBe("timeout");
  });

  test("an approval's answer ends its wait; a second one changes nothing", async () => {
    const one = harness({
      scripts: { asks: (host) => host.call("approval.request", "Deploy?", { detail: { to: "prod" } }) },
    });
    const runId = await one.start("asks");
    await one.rest(runId);
    const [wait] = await one.store.waits();
    expect(wait?.callId).toMatch(/^call_[\w-]{22}$/);
    expect(wait?.wait).toMatchObject({
      kind: "approval",
      title: "Deploy?",
      detail: encodeValue({ to: "prod" }),
    });
    const answer = (approved: boolean): boolean =>
      one.runner.waitDone(runId, 0, { ok: true, value: encodeValue({ approved, value: 1, by: "ada" }) });
    answer(true);
    answer(false);
    const run = await one.end(runId);
    expect(resultOf(run)).toEqual({ approved: true, value: 1, by: "ada" });
    const kept = await one.store.quarantined(runId);
    expect(kept.every(({ reason }) => reason === "contradictory" || reason === "late")).toBe(true);
  });

  test("waits for another run, whether that finishes before or after", async () => {
    const waits = flowFunctions({ grants: [], startRun: () => Promise.reject(new Error("not asked")) });
    const one = harness({
      functions: waits.filter(({ name }) => name === "flow.wait"),
      scripts: {
        child: async (host) => (await host.call("signal.wait", "go")) as number,
        failing: async () => {
          throw new Error("child failed");
        },
        parent: (host, child) => host.call("flow.wait", child),
      },
    });
    const failing = await one.start("failing");
    await one.end(failing);
    const first = await one.end(await one.start("parent", failing));
    expect(resultOf(first)).toMatchObject({
      status: "script_error",
      ok: false,
      error: { code: "uncaught", message: "mapped: child failed" },
    });
    const child = await one.start("child");
    const parent = await one.start("parent", child);
    await one.rest(parent);
    await one.signal(child, "go", 42);
    const finished = await one.end(child);
    one.runner.waitDone(parent, 0, runOutcome(finished));
    expect(resultOf(await one.end(parent))).toEqual({
      status: "completed",
      ok: true,
      value: 42,
      error: null,
    });
    const none = await one.end(await one.start("parent", "run_none"));
    expect(none).toMatchObject({ status: "script_error", reason: "not_found" });
  });

  test("wakes a run that went to sleep while the store was still asked about the other run", async () => {
    const waits = flowFunctions({ grants: [], startRun: () => Promise.reject(new Error("not asked")) });
    const store = new MemoryStore();
    let asked = 0;
    // The second look at the other run, after the wait was recorded, is answered when the run that waits has gone to rest.
    const slow = new Proxy(store, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== "function") return member;
        if (key !== "run") return member.bind(target);
        return async (runId: string) => {
          if (runId === child && ++asked === 2) await one.rest(parent);
          return await target.run(runId);
        };
      },
    });
    let child = "";
    let parent = "";
    const one = harness({
      store: slow,
      functions: waits.filter(({ name }) => name === "flow.wait"),
      scripts: { child: async () => 7, parent: (host, awaited) => host.call("flow.wait", awaited) },
    });
    const first = await one.start("child");
    await one.end(first);
    child = first;
    const { runId } = newRun("parent");
    parent = runId;
    await one.start("parent", child, { runId });
    expect(resultOf(await one.end(parent))).toMatchObject({ ok: true, value: 7 });
    expect(asked).toBeGreaterThanOrEqual(2);
  });

  test("does not wait for itself, nor for a run of a flow that is not granted", async () => {
    const waits = flowFunctions({ grants: [], startRun: () => Promise.reject(new Error("not asked")) });
    const one = harness({
      functions: waits.filter(({ name }) => name === "flow.wait"),
      scripts: { parent: (host, child) => host.call("flow.wait", child) },
    });
    const other = newRun("parent", { flow: "other" });
    await one.store.commit({ operations: [{ kind: "createRun", run: other }] });
    const denied = await one.end(await one.start("parent", other.runId));
    expect(denied).toMatchObject({ status: "denied", reason: "denied" });
    expect(denied.errorJson).toContain("grants.flows");
    const { runId } = newRun("parent");
    const itself = await one.end(await one.start("parent", runId, { runId }));
    expect(itself).toMatchObject({ status: "script_error", reason: "conflict" });
    expect((await one.history(runId)).calls).toMatchObject([{ effect: "wait", wait: null }]);
  });

  test("calls go on in the parent while others use the worker, and their outcomes wake it", async () => {
    const answer = later<string>();
    let calls = 0;
    const one = harness({
      blockedMostMs: 10,
      activationsMost: 1,
      functions: [
        row("slow", "once", () => {
          calls += 1;
          return answer.promise;
        }),
      ],
      scripts: { slow: (host) => host.call("slow"), quick: async () => "quick" },
    });
    const slow = await one.start("slow");
    await one.until(() => calls === 1);
    const quick = await one.start("quick");
    expect(resultOf(await one.end(quick))).toBe("quick");
    expect(one.suspended).toMatchObject([{ runId: slow, reason: "calls" }]);
    answer.resolve("done");
    expect(resultOf(await one.end(slow))).toBe("done");
    expect(calls).toBe(1);
  });
});

describe("order", () => {
  const racing = async (host: ScriptHost): Promise<unknown> => {
    const order: unknown[] = [];
    const take = (name: string) => host.call("answer", name).then((value) => order.push(value));
    await Promise.all([take("a"), take("b"), take("c")]);
    const first = await Promise.race([host.call("answer", "d"), host.call("answer", "e")]);
    const any = await Promise.any([host.call("answer", "fails"), host.call("answer", "f")]);
    await host.call("signal.wait", "go");
    return [order, first, any];
  };

  test("outcomes come in the order in which they were recorded, live and in a replay", async () => {
    const hand = new HandGiven();
    const one = harness({ functions: hand.functions, scripts: { racing } });
    const runId = await one.start("racing");
    for (const name of ["b", "c", "a", "e", "f", "d"]) await hand.give(one, runId, name);
    await one.rest(runId);
    await one.signal(runId, "go");
    const run = await one.end(runId);
    expect(run.activations).toBe(2);
    const { deliveries, calls } = await one.history(runId);
    const recorded = deliveries.flatMap((delivery) =>
      delivery.kind === "call" && delivery.outcome.ok ? [decodeValue(delivery.outcome.value)] : [],
    );
    const [order, first, any] = resultOf(run) as [string[], string, string];
    expect(order).toEqual(recorded.filter((name) => ["a", "b", "c"].includes(String(name))));
    expect(order).toEqual(["b", "c", "a"]);
    expect([first, any]).toEqual(["e", "f"]);
    expect(calls).toHaveLength(8);
  });
});

describe("turns", () => {
  test("at most activationsMost run at a time; the others follow in their order", async () => {
    let most = 0;
    const one = harness({
      activationsMost: 2,
      functions: [
        row("look", "read", async () => {
          most = Math.max(most, one.scripted.running.length);
        }),
      ],
      scripts: { looks: (host) => host.call("look") },
    });
    const runs = [];
    for (let n = 0; n < 10; n++) runs.push(await one.start("looks"));
    for (const runId of runs) await one.end(runId);
    expect(most).toBe(2);
    expect(one.finished.map(({ runId }) => runId)).toEqual(runs);
  });

  test("a run may not be adopted twice, nor more than runsMost", async () => {
    const one = harness({ runsMost: 1, scripts: { waits: (host) => host.call("signal.wait", "go") } });
    const runId = await one.start("waits");
    expect(() => one.runner.adopt(runId)).toThrow("driven here already");
    await one.rest(runId);
    expect(() => one.runner.adopt(runId)).toThrow("driven here already");
    expect(() => one.runner.adopt("run_2")).toThrow("runsMost");
    expect(one.runner.active).toBe(0);
  });

  test("what is not driven here cannot be cancelled or reconciled", () => {
    const { runner } = harness({ scripts: {} });
    expect(runner.cancel("run_1", "me", "caller")).toBe(false);
    expect(runner.reconcile("run_1", 0, { kind: "not_applied" })).toBe(false);
    runner.signalled("run_1", "go");
    runner.waitDone("run_1", 0, { ok: true, value: encodeValue(1) });
  });
});

describe("virtual time", () => {
  test("nobody waits: timers, sleeps and timeouts happen at once, in their order, and the clock moves", async () => {
    const one = harness({
      virtualTime: true,
      scripts: {
        day: async (host) => {
          const before = host.now();
          await host.call("sleep", 3_600_000);
          const slept = host.now() - before;
          const winner = await Promise.race([
            host.sleep(7_200_000).then(() => "timer"),
            host.call("sleep", 1_000).then(() => "sleep"),
          ]);
          const late = await host.call("signal.wait", "go", { timeoutMs: 86_400_000 }).catch(() => "late");
          return [slept, winner, late, host.now() - before];
        },
      },
    });
    const run = await one.end(await one.start("day"));
    expect(resultOf(run)).toEqual([3_600_000, "sleep", "late", 3_600_000 + 1_000 + 86_400_000]);
    expect(one.suspended).toEqual([]);
  });
});
