// Small parts of the service: who waits for what, and that everybody is let go.
import type { Unit } from "@flowcell/journal";
import { encodeValue } from "@flowcell/protocol";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Landmarks } from "./landmarks.js";
import { Tasks } from "./tasks.js";
import { RunWaits } from "./waits.js";
import { Watchers } from "./watchers.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function unit(runId: string, ...operations: Unit["operations"]): Unit {
  return { fence: { runId, owner: "o", generation: 1 }, operations };
}

function waitCall(position: number, target: string): Unit["operations"][number] {
  const value = encodeValue(null);
  return {
    kind: "call",
    attempts: 0,
    call: {
      position,
      name: "flow.wait",
      effect: "wait",
      digest: "d",
      args: value,
      idempotencyKey: "k",
      madeAt: 0,
      note: null,
      wait: { kind: "run", runId: target, timeoutMs: null },
      dueAt: null,
      callId: null,
    },
  };
}

function deliver(position: number): Unit["operations"][number] {
  const outcome = { ok: true, value: encodeValue(null) } as const;
  return { kind: "deliver", order: 0, guestClockMs: 0, position, outcome, at: 0 };
}

describe("landmarks", () => {
  test("pass with the unit that carries them, for everybody who waits for them", async () => {
    const landmarks = new Landmarks();
    const [one, other] = [landmarks.expect("r", 3, 1000), landmarks.expect("r", 3, 1000)];
    const end = landmarks.expect("r", "end", 1000);
    landmarks.observe(unit("s", deliver(3)));
    landmarks.observe(unit("r", deliver(4)));
    landmarks.observe(unit("r", deliver(3)));
    expect(await Promise.all([one.arrival, other.arrival])).toEqual(["passed", "passed"]);
    landmarks.observe(unit("r", { kind: "run", patch: { state: "suspended" } }));
    landmarks.observe(unit("r", { kind: "run", patch: { endStatus: "cancelled" } }));
    expect(await end.arrival).toBe("passed");
    expect(vi.getTimerCount()).toBe(0);
  });

  test("are given up after a while, by leaving, and not kept", async () => {
    const landmarks = new Landmarks();
    const late = landmarks.expect("r", 1, 1000);
    const left = landmarks.expect("r", 2, 1000);
    left.leave();
    expect(await left.arrival).toBe("late");
    await vi.advanceTimersByTimeAsync(1000);
    expect(await late.arrival).toBe("late");
    expect(vi.getTimerCount()).toBe(0);
  });

  test("let go of those who wait for a run that finished without them, or that is not driven any more", async () => {
    const landmarks = new Landmarks();
    const [call, end, other] = [
      landmarks.expect("r", 3, 1000),
      landmarks.expect("r", "end", 1000),
      landmarks.expect("s", 3, 1000),
    ];
    landmarks.observe(unit("r", { kind: "run", patch: { state: "finished" } }));
    expect(await Promise.all([call.arrival, end.arrival])).toEqual(["gone", "passed"]);
    landmarks.gone("s");
    expect(await other.arrival).toBe("gone");
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("waits for runs", () => {
  test("are known from what is committed until they are answered or given up", () => {
    const waits = new RunWaits();
    waits.observe(unit("p", waitCall(0, "c"), waitCall(1, "c"), waitCall(2, "d")));
    waits.observe(unit("q", waitCall(0, "c")));
    expect(waits.waitersOf("c")).toEqual([
      { runId: "p", position: 0 },
      { runId: "p", position: 1 },
      { runId: "q", position: 0 },
    ]);
    waits.observe(unit("p", deliver(0)));
    waits.observe(unit("q", { kind: "cancelCall", position: 0 }));
    expect(waits.waitersOf("c")).toEqual([{ runId: "p", position: 1 }]);
    waits.finished("p");
    expect(waits.waitersOf("c")).toEqual([]);
    expect(waits.waitersOf("d")).toEqual([]);
  });

  test("are taken from the store when a service opens", () => {
    const waits = new RunWaits();
    const open = { flow: "f", dueAt: null, callId: null, madeAt: 0, position: 4 };
    waits.fill([
      { ...open, runId: "p", wait: { kind: "run", runId: "c", timeoutMs: null } },
      { ...open, runId: "q", wait: { kind: "time", waitMs: 5 } },
    ]);
    expect(waits.waitersOf("c")).toEqual([{ runId: "p", position: 4 }]);
  });
});

describe("watchers", () => {
  test("are told of their run, and of the end", async () => {
    const watchers = new Watchers();
    const one = watchers.watch("r", undefined);
    const other = watchers.watch("s", undefined);
    watchers.notify({ runId: "r" });
    await one.changed;
    watchers.close();
    await other.changed;
    await watchers.watch("t", undefined).changed;
  });

  test("are rejected when the store fails, and those that come later too", async () => {
    const watchers = new Watchers();
    const one = watchers.watch("r", undefined);
    const failure = new Error("disk");
    watchers.fail(failure);
    await expect(one.changed).rejects.toBe(failure);
    await expect(watchers.watch("r", undefined).changed).rejects.toBe(failure);
  });

  test("leave by their signal", async () => {
    const watchers = new Watchers();
    const controller = new AbortController();
    const one = watchers.watch("r", controller.signal);
    controller.abort();
    await one.changed;
    await watchers.watch("r", controller.signal).changed;
  });
});

test("tasks are waited for, with those that they begin, and what they throw is told", async () => {
  const tasks = new Tasks();
  const seen: unknown[] = [];
  const failure = new Error("x");
  tasks.add(
    Promise.resolve().then(() => {
      tasks.add(Promise.reject(failure), (error) => seen.push(error));
    }),
    () => undefined,
  );
  await tasks.settled();
  expect(seen).toEqual([failure]);
});
