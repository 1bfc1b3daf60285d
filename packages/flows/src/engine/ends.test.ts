// How runs end in the hands of the runner: cancels, deadlines, lost workers, refusals, gates, bugs, failures of the store.
import { HostError } from "@flowcell/host";
import { MemoryStore, type Store, StoreFailure, type Unit } from "@flowcell/journal";
import { encodeValue } from "@flowcell/protocol";
import { afterEach, describe, expect, test } from "vitest";
import type { Gate } from "../ports.js";
import {
  Harness,
  type HarnessOptions,
  makeRunnable,
  newRun,
  resultOf,
  row,
} from "../testing/engine-harness.js";
import { StoodClock } from "../testing/hand-given.js";
import type { ScriptHost } from "../testing/scripted-pool.js";

const made: Harness[] = [];

function harness(options: HarnessOptions): Harness {
  const one = new Harness(options);
  made.push(one);
  return one;
}

afterEach(async () => {
  for (const one of made.splice(0)) {
    await one.runner.close();
    expect(one.scripted.running).toEqual([]);
  }
});

const never = (): Promise<never> => new Promise(() => undefined);

/** A handler that ends when it is aborted, saying that nothing happened. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new HostError("cancelled", "nothing was sent")));
  });
}

describe("cancelling", () => {
  const blocked = (host: ScriptHost): Promise<unknown> => host.call("f");

  test("a run ends it, aborts what it began, and records how that ended", async () => {
    let begun = 0;
    const clock = new StoodClock();
    const one = harness({
      now: clock.now,
      functions: [
        row("f", "once", (_args, { signal }) => {
          begun += 1;
          return untilAborted(signal);
        }),
      ],
      scripts: { blocked },
    });
    const runId = await one.start("blocked", undefined, { deadlineMs: 100 });
    await one.until(() => begun === 1);
    expect(one.runner.cancel(runId, "ada", "caller")).toBe(true);
    // Until the deadline it may answer by itself.
    await one.until(async () => (await one.store.run(runId))?.endStatus === "cancelled");
    clock.pass(200);
    const run = await one.end(runId);
    expect(run).toMatchObject({ status: "cancelled", reason: "caller", cancelRequestedBy: "ada" });
    const { deliveries } = await one.history(runId);
    expect(deliveries).toHaveLength(1);
    expect(one.scripted.running).toEqual([]);
  });

  test("a run that sleeps, one that waits for a worker, and one that is not begun", async () => {
    const one = harness({
      activationsMost: 1,
      functions: [row("f", "read", never)],
      scripts: { blocked, sleeps: (host) => host.call("signal.wait", "go") },
    });
    const sleeps = await one.start("sleeps");
    await one.rest(sleeps);
    expect(one.runner.cancel(sleeps, "ada", "revoked")).toBe(true);
    expect(await one.end(sleeps)).toMatchObject({ status: "cancelled", reason: "revoked" });

    one.scripted.holding = true;
    const queued = await one.start("blocked");
    await one.until(() => one.scripted.cells.length === 2);
    const waiting = await one.start("blocked");
    expect(one.runner.cancel(waiting, "ada", "caller")).toBe(true);
    expect(await one.end(waiting)).toMatchObject({ status: "cancelled", startedAt: null });
    expect(one.runner.cancel(queued, "ada", "caller")).toBe(true);
    expect(await one.end(queued)).toMatchObject({ status: "cancelled" });
  });

  test("a call by the script: a read that is under way, a wait, and one whose handler says what happened", async () => {
    const one = harness({
      functions: [
        row("read", "read", never),
        row("nothing", "once", (_args, { signal }) => untilAborted(signal)),
        row("blind", "once", never),
      ],
      scripts: {
        gives_up: async (host) => {
          const calls = ["read", "nothing", "blind"].map((name) => host.call(name));
          calls.push(host.call("signal.wait", "go"));
          await host.call("sleep", 30);
          for (const call of calls) call.cancel();
          const ends = await Promise.allSettled(calls);
          return ends.map((end) => (end.status === "rejected" ? end.reason.code : "done"));
        },
      },
    });
    const runId = await one.start("gives_up");
    const run = await one.end(runId);
    expect(resultOf(run)).toEqual(["cancelled", "cancelled", "outcome_unknown", "cancelled"]);
    const { calls } = await one.history(runId);
    expect(calls.filter(({ cancelled }) => cancelled).map(({ name }) => name)).toContain("blind");
  });
});

describe("the end of the script", () => {
  test("waits for effects that were begun, gives reads and waits up", async () => {
    let answer: (value: unknown) => void = () => undefined;
    const one = harness({
      functions: [
        row("slow", "once", () => new Promise((resolve) => (answer = resolve))),
        row("read", "read", never),
      ],
      scripts: {
        leaves: async (host) => {
          for (const call of [host.call("slow"), host.call("read"), host.call("signal.wait", "go")])
            void call;
          await host.call("sleep", 20);
          return "left";
        },
      },
    });
    const runId = await one.start("leaves");
    await one.until(async () => (await one.store.run(runId))?.endStatus === "completed");
    expect(one.finished).toEqual([]);
    answer("late");
    const run = await one.end(runId);
    expect(resultOf(run)).toBe("left");
    const { deliveries } = await one.history(runId);
    expect(deliveries.at(-1)).toMatchObject({
      position: 0,
      outcome: { ok: true, value: encodeValue("late") },
    });
  });

  test("the deadline ends a run whose effect does not answer; what the handler says later is kept aside", async () => {
    const clock = new StoodClock();
    let begun = 0;
    let say: (value: unknown) => void = () => undefined;
    const one = harness({
      now: clock.now,
      functions: [
        row("slow", "once", () => {
          begun += 1;
          return new Promise((resolve) => (say = resolve));
        }),
      ],
      scripts: { slow: (host) => host.call("slow") },
    });
    const runId = await one.start("slow", undefined, { deadlineMs: 100 });
    await one.until(() => begun === 1);
    clock.pass(200);
    const run = await one.end(runId);
    expect(run).toMatchObject({ status: "timed_out", reason: "deadline" });
    const { deliveries } = await one.history(runId);
    expect(deliveries).toMatchObject([{ outcome: { ok: false, error: { code: "outcome_unknown" } } }]);
    say("it was done");
    const kept = await one.until(async () => {
      const rows = await one.store.quarantined(runId);
      return rows.length > 0 && rows;
    });
    expect(kept).toMatchObject([
      { position: 0, reason: "late", outcome: { ok: true, value: encodeValue("it was done") } },
    ]);
  });
});

describe("no fault of the script", () => {
  test("a worker that is lost is replaced; begun calls go on and are begun once; the log is kept once", async () => {
    let begun = 0;
    let answer: (value: unknown) => void = () => undefined;
    const one = harness({
      functions: [
        row("f", "once", () => {
          begun += 1;
          return new Promise((resolve) => (answer = resolve));
        }),
      ],
      scripts: {
        one: async (host) => {
          host.log("begin");
          const value = await host.call("f");
          host.log("end");
          return value;
        },
      },
    });
    const runId = await one.start("one");
    await one.until(() => begun === 1);
    one.scripted.cells[0]?.lose();
    await one.until(() => one.scripted.cells.length === 2);
    answer("done");
    const run = await one.end(runId);
    expect(resultOf(run)).toBe("done");
    expect(run.activations).toBe(2);
    expect(begun).toBe(1);
    expect((await one.store.logs(runId)).map(({ text }) => text)).toEqual(["begin", "end"]);
  });

  test("workers that are lost again and again end the run as worker_lost", async () => {
    const one = harness({
      failuresMost: 2,
      functions: [row("f", "read", never)],
      scripts: { one: (host) => host.call("f") },
    });
    const runId = await one.start("one");
    let lost = 0;
    const run = await one.until(() => {
      for (const cell of one.scripted.running) {
        cell.lose();
        lost += 1;
      }
      return one.finished.find((row) => row.runId === runId);
    });
    expect(run).toMatchObject({ status: "worker_lost", reason: "signal", failures: 3 });
    expect(lost).toBe(3);
  });

  test("a pool that is full is asked again, and that is no failure", async () => {
    const one = harness({ scripts: { quick: async () => "done" } });
    one.scripted.refusals.push({ status: "overloaded", reason: "queue_full" });
    const run = await one.end(await one.start("quick"));
    expect(run).toMatchObject({ status: "completed", failures: 0, activations: 2 });
  });
});

describe("the gate", () => {
  const scripts = { quick: async () => "done", sleeps: (host: ScriptHost) => host.call("signal.wait", "go") };
  const open: Gate = { ok: true, runnable: makeRunnable("quick", []) };
  const closed: Gate = {
    ok: false,
    end: { status: "denied", reason: "denied", message: "the version was revoked" },
  };

  test("ends a run whose version may not run; nothing of it ran", async () => {
    const one = harness({ scripts, gate: async () => closed });
    const run = await one.end(await one.start("quick"));
    expect(run).toMatchObject({ status: "denied", reason: "denied" });
    expect(JSON.parse(run.errorJson ?? "")).toMatchObject({ message: "the version was revoked" });
    expect(one.scripted.cells).toEqual([]);
  });

  test("is asked before every activation, and again later when it cannot say", async () => {
    const answers: Gate[] = [{ ok: false, retryAt: Date.now() + 20 }, open];
    let asked = 0;
    const one = harness({
      scripts,
      gate: async () => {
        asked += 1;
        return answers.shift() ?? closed;
      },
    });
    expect(await one.end(await one.start("quick"))).toMatchObject({ status: "completed" });
    expect(asked).toBe(2);
    const again = await one.start("quick");
    expect(await one.end(again)).toMatchObject({ status: "denied" });
  });

  test("what was begun before the version was revoked is on record as unknown", async () => {
    const store = new MemoryStore();
    const first = harness({
      store,
      functions: [row("f", "once", never)],
      scripts: { f: (host) => host.call("f") },
    });
    const runId = await first.start("f");
    await first.until(async () => (await first.history(runId)).calls.length === 1);
    await first.runner.close();
    const second = harness({ store, scripts, gate: async () => closed });
    second.runner.adopt(runId);
    const run = await second.end(runId);
    expect(run).toMatchObject({ status: "denied" });
    const { deliveries } = await second.history(runId);
    expect(deliveries).toMatchObject([{ position: 0, outcome: { error: { code: "outcome_unknown" } } }]);
  });
});

describe("what one run may have on record", () => {
  test("is bounded: a loop of large reads, and one of timers, end with a message that says what to do", async () => {
    let reads = 0;
    const one = harness({
      recordedBytesMost: 10_000,
      timersMost: 5,
      functions: [
        row("read", "read", () => {
          reads += 1;
          return "x".repeat(1_000);
        }),
      ],
      scripts: {
        reads: async (host) => {
          for (;;) await host.call("read");
        },
        ticks: async (host) => {
          for (;;) await host.sleep(1);
        },
      },
    });
    const read = await one.end(await one.start("reads"));
    expect(read).toMatchObject({ status: "budget_exceeded", reason: "record_size" });
    expect(JSON.parse(read.errorJson ?? "")).toMatchObject({
      code: "record_size",
      limit: 10_000,
      message: expect.stringContaining("read and send less at a time"),
    });
    expect(reads).toBe(10);
    const ticked = await one.end(await one.start("ticks"));
    expect(ticked).toMatchObject({ status: "budget_exceeded", reason: "record_size", nextOrder: 6 });
  });

  test("is counted from the store by the next process", async () => {
    const store = new MemoryStore();
    const scripts = {
      reads: async (host: ScriptHost) => {
        await host.call("read");
        return await host.call("signal.wait", "go");
      },
    };
    const functions = [row("read", "read", () => "x".repeat(1_000))];
    const first = harness({ store, scripts, functions });
    const runId = await first.start("reads");
    await first.rest(runId);
    await first.runner.close();
    const second = harness({ store, scripts, functions, recordedBytesMost: 1_000 });
    second.runner.adopt(runId);
    await second.signal(runId, "go");
    expect(await second.end(runId)).toMatchObject({ status: "budget_exceeded", reason: "record_size" });
  });
});

/** A store whose units can be looked at, held up and broken. */
function watched(store: Store, commit: (unit: Unit) => ReturnType<Store["commit"]>): Store {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "commit") return commit;
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

describe("failures of flowcell", () => {
  test("a unit that the store refuses is a bug: that run ends as internal, others go on", async () => {
    const memory = new MemoryStore();
    let spoil = true;
    const store = watched(memory, async (unit) => {
      if (spoil && unit.operations.some(({ kind }) => kind === "call")) {
        spoil = false;
        return { ok: false, reason: "conflict", at: 0, message: "a rule would break" };
      }
      return await memory.commit(unit);
    });
    const failed: unknown[] = [];
    const one = harness({
      store,
      hooks: { failed: (runId, error) => failed.push(runId, error) },
      scripts: { kv: (host) => host.call("kv.get", "k") },
    });
    const first = await one.start("kv");
    const run = await one.end(first);
    expect(run).toMatchObject({ status: "internal", reason: "bug" });
    expect(failed).toEqual([
      first,
      expect.objectContaining({ message: expect.stringContaining("a rule would break") }),
    ]);
    expect(await one.end(await one.start("kv"))).toMatchObject({ status: "completed" });
  });

  test("a hook that throws is told, and harms no run", async () => {
    const failed: unknown[] = [];
    const one = harness({
      hooks: {
        failed: (_runId, error) => failed.push(error),
        suspended: () => {
          throw new Error("hook");
        },
      },
      scripts: { sleeps: (host) => host.call("signal.wait", "go") },
    });
    const runId = await one.start("sleeps");
    await one.until(() => failed.length > 0);
    await one.signal(runId, "go", 1);
    expect(resultOf(await one.end(runId))).toBe(1);
  });

  test("when the store fails everything stops, that is told once, and nothing is tried again", async () => {
    const memory = new MemoryStore();
    let broken = false;
    let after = 0;
    const store = watched(memory, async (unit) => {
      if (!broken) return await memory.commit(unit);
      after += 1;
      throw new StoreFailure("the disk is gone");
    });
    const aborted: string[] = [];
    const one = harness({
      store,
      functions: [
        row("slow", "read", (_args, { signal }) => {
          signal.addEventListener("abort", () => aborted.push("slow"));
          return never();
        }),
      ],
      scripts: {
        waits: (host) => host.call("slow"),
        kv: async (host) => {
          await host.call("sleep", 50);
          return await host.call("kv.get", "k");
        },
      },
    });
    for (let n = 0; n < 3; n++) await one.start("waits");
    await one.start("kv");
    await one.until(() => one.scripted.running.length === 4);
    broken = true;
    await one.until(() => one.storeFailures.length > 0);
    await one.until(() => one.scripted.running.length === 0 && aborted.length === 3);
    const tried = after;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(after).toBe(tried);
    expect(one.storeFailures).toHaveLength(1);
    expect(one.runner.active).toBe(0);
    one.runner.adopt("run_more");
    expect(one.runner.active).toBe(0);
  });
});

describe("draining", () => {
  test("suspends what waits, leaves what is not begun, and waits for effects", async () => {
    const answers: ((value: unknown) => void)[] = [];
    const byHand = (): Promise<unknown> => new Promise((resolve) => answers.push(resolve));
    const one = harness({
      activationsMost: 2,
      functions: [row("slow", "once", byHand), row("read", "read", byHand)],
      scripts: { slow: (host) => host.call("slow"), reads: (host) => host.call("read") },
    });
    const slow = await one.start("slow");
    const reads = await one.start("reads");
    await one.until(() => answers.length === 2);
    const pending = await one.start("reads");
    const drained = one.runner.drain(20_000);
    expect(await one.rest(slow)).toMatchObject({ reason: "calls" });
    for (const answer of answers) answer("done");
    await drained;
    expect(one.scripted.running).toEqual([]);
    // What it did is on record, and it is for the next process to go on.
    expect((await one.history(slow)).deliveries).toHaveLength(1);
    expect(await one.store.run(slow)).toMatchObject({ state: "pending" });
    expect((await one.store.run(reads))?.state).not.toBe("running");
    expect(await one.store.run(pending)).toMatchObject({ state: "pending", activations: 0 });
    const next = harness({
      store: one.store,
      functions: [row("read", "read", () => "read")],
      scripts: { slow: (host) => host.call("slow"), reads: (host) => host.call("read") },
    });
    expect(next.runner.active).toBe(0);
  });

  test("is over when its patience is: a script that does not block goes on in the next process", async () => {
    const one = harness({ scripts: { spins: never, quick: async () => "done" } });
    // A script that never waits for the host: the scripted worker says nothing.
    const runId = newRun("spins").runId;
    await one.store.commit({ operations: [{ kind: "createRun", run: newRun("spins", { runId }) }] });
    one.scripted.holding = true;
    one.runner.adopt(runId);
    await one.until(() => one.scripted.cells.length === 1);
    await one.runner.drain(30);
    expect(one.scripted.running).toEqual([]);
    expect((await one.store.run(runId))?.state).not.toBe("finished");
  });

  test("runs that sleep are not woken any more", async () => {
    const clock = new StoodClock();
    const one = harness({
      suspendAfterMs: 0,
      now: clock.now,
      scripts: { sleeps: (host) => host.call("sleep", 20) },
    });
    const runId = await one.start("sleeps");
    await one.rest(runId);
    await one.runner.drain(60_000);
    clock.pass(1_000);
    // Time in which an alarm that was left would ring.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await one.store.run(runId)).toMatchObject({ state: "suspended" });
  });
});
