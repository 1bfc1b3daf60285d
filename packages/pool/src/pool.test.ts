// Who gets a worker, who waits, who is refused: the pool over fake workers and a fake clock.
import { getEventListeners } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { Pool } from "./pool.js";
import type { PoolEvent, PoolOptions } from "./pool-options.js";
import { FakeClock, ticks } from "./testing/fake-clock.js";
import {
  FakeBackend,
  type FakeConfinement,
  type FakeWorker,
  finished,
  hostCall,
} from "./testing/fake-worker.js";
import { json, outcome, testRequest, track } from "./testing/requests.js";
import type { ActivationRequest } from "./types.js";

const open: Pool<FakeConfinement>[] = [];
const flow = "a";

function harness(options: PoolOptions = {}, setup: (backend: FakeBackend) => void = () => {}) {
  const clock = new FakeClock();
  const backend = new FakeBackend();
  setup(backend);
  const events: PoolEvent[] = [];
  const pool = new Pool(backend, { onEvent: (event) => events.push(event), ...options }, clock);
  open.push(pool);
  const start = (flow: string, script: string, more: Partial<ActivationRequest> = {}) =>
    track(pool.activate(testRequest(flow, script, more)));
  return { clock, backend, pool, events, start };
}

/** Lets everything happen that needs no test to act: collections, replacements, grants. */
async function rest(clock: FakeClock): Promise<void> {
  for (let i = 0; i < 6; i++) {
    await ticks();
    clock.advance(0);
  }
}

/** … and what the pool puts off for a moment: the replacement of a spare. */
async function refill(clock: FakeClock): Promise<void> {
  clock.advance(2);
  await rest(clock);
}

function only(workers: readonly FakeWorker[]): FakeWorker {
  const [worker] = workers;
  if (worker === undefined || workers.length !== 1)
    throw new Error(`${workers.length} workers where one was expected`);
  return worker;
}

afterEach(async () => {
  for (const pool of open.splice(0)) {
    const closed = pool.close();
    await ticks();
    await closed;
  }
});

describe("leases", () => {
  it("prefers the flow's own idle worker, then a spare, then a new process", async () => {
    const { clock, backend, start } = harness({ spares: 1, workersMax: 8 });
    await rest(clock);
    expect(backend.workers.length).toBe(1);
    start("a", "first");
    const first = only(backend.running("first"));
    expect(first).toBe(backend.workers[0]);
    await rest(clock);
    expect(backend.workers.length).toBe(1);
    await refill(clock);
    expect(backend.workers.length).toBe(2);
    first.finish();
    await rest(clock);
    start("a", "own");
    expect(only(backend.running("own"))).toBe(first);
    start("a", "spare");
    expect(only(backend.running("spare"))).toBe(backend.workers[1]);
    start("a", "new");
    expect(backend.running("new")).toEqual([]);
    await rest(clock);
    expect(backend.workers.indexOf(only(backend.running("new")))).toBeGreaterThan(1);
  });

  it("never lets two flows into one process, nor more processes live than allowed, whatever the order of events", async () => {
    const workersMax = 3;
    const { clock, backend, pool, start } = harness({ spares: 1, workersMax, activationsMax: 5 });
    const flows = ["a", "b", "c", "d", "e"];
    let random = 12345;
    const next = (below: number): number => {
      random = (random * 1103515245 + 12345) % 2147483648;
      return Math.floor((random / 2147483648) * below);
    };
    const results: ReturnType<typeof start>[] = [];
    for (let step = 0; step < 600; step++) {
      const choice = next(10);
      const flow = flows[next(flows.length)] ?? "a";
      const busy = backend.live.filter(({ last, killed }) => !killed && last?.kind === "activate");
      const one = busy[next(Math.max(1, busy.length))];
      if (choice < 5) results.push(start(flow, flow, next(4) === 0 ? { isolation: "process" } : {}));
      else if (choice < 8 && one !== undefined) one.finish();
      else if (choice === 8 && one !== undefined) one.die({ code: 81 });
      else clock.advance(next(40));
      await ticks();
      expect(backend.live.length).toBeLessThanOrEqual(workersMax);
      const total = pool.health().workers.total;
      expect(total).toBeLessThanOrEqual(workersMax);
    }
    for (const worker of backend.workers) {
      const served = new Set(
        worker.received.map((message) => (message.kind === "activate" ? message.script : "")),
      );
      expect(served.size).toBeLessThanOrEqual(1);
    }
    const owners = new Set(
      backend.workers.flatMap(({ received }) => received.map((m) => (m.kind === "activate" ? m.script : ""))),
    );
    expect(owners.size).toBe(flows.length);
    await pool.close();
    await ticks();
    expect(results.filter(({ result }) => result === undefined)).toEqual([]);
  });

  it("ends the longest idle worker of another flow to make room, and only that one", async () => {
    const { clock, backend, start } = harness({ spares: 0, workersMax: 2 });
    for (const flow of ["a", "b"]) {
      start(flow, flow);
      await rest(clock);
      only(backend.running(flow)).finish();
      clock.advance(5);
    }
    start("c", "c");
    await rest(clock);
    expect(backend.workers.map(({ killed }) => killed)).toEqual([true, false, false]);
    expect(only(backend.running("c"))).toBe(backend.workers[2]);
  });

  it("waits a moment for the flow's own busy worker before it ends another flow's idle one", async () => {
    const { clock, backend, start } = harness({ spares: 0, workersMax: 2 });
    for (const flow of ["a", "b"]) {
      start(flow, flow);
      await rest(clock);
    }
    only(backend.running("b")).finish();
    start("a", "second");
    await rest(clock);
    expect(backend.workers.map(({ killed }) => killed)).toEqual([false, false]);
    only(backend.running("a")).finish();
    await rest(clock);
    expect(only(backend.running("second"))).toBe(backend.workers[0]);

    // One that was idle for less than a turn is likely to be wanted again by its own flow.
    start("b", "b again");
    await rest(clock);
    start("a", "third");
    clock.advance(19);
    only(backend.running("b again")).finish();
    clock.advance(19);
    await rest(clock);
    expect(backend.workers.map(({ killed }) => killed)).toEqual([false, false]);
    clock.advance(20);
    await rest(clock);
    expect(backend.workers.map(({ killed }) => killed)).toEqual([false, true, false]);
    expect(only(backend.running("third"))).toBe(backend.workers[2]);
  });

  it("gives a single-use activation a process that has run nothing, and ends it after", async () => {
    const { clock, backend, start } = harness({ spares: 1, workersMax: 4 });
    await rest(clock);
    start("a", "first");
    only(backend.running("first")).finish();
    await refill(clock);
    const single = start("a", "single", { isolation: "process" });
    const worker = only(backend.running("single"));
    expect(worker).not.toBe(backend.workers[0]);
    worker.finish();
    await rest(clock);
    expect(outcome(single.result)).toBe("completed");
    expect(worker.killed).toBe(true);
    expect(worker.closed).toBe(true);
  });

  it("retires a worker after its number of activations", async () => {
    const { clock, backend, start } = harness({ spares: 0, workersMax: 1, activationsMax: 3 });
    for (let i = 0; i < 4; i++) {
      start("a", "x");
      await rest(clock);
      only(backend.running("x")).finish();
      await rest(clock);
    }
    expect(backend.workers.map(({ received, killed }) => [received.length, killed])).toEqual([
      [3, true],
      [1, false],
    ]);
  });

  it("retires a worker after its idle time, keeps spares, and counts idle time anew after each activation", async () => {
    const { clock, backend, start } = harness({
      spares: 1,
      workersMax: 4,
      idleMs: 1000,
      inspectMs: 10_000,
    });
    await rest(clock);
    start("a", "x");
    const worker = only(backend.running("x"));
    worker.finish();
    await rest(clock);
    clock.advance(900);
    start("a", "x");
    clock.advance(500);
    worker.finish();
    clock.advance(999);
    expect(worker.killed).toBe(false);
    clock.advance(1);
    expect(worker.killed).toBe(true);
    await rest(clock);
    clock.advance(60_000);
    expect(backend.live.length).toBe(1);
    expect(backend.live[0]?.received).toEqual([]);
  });

  it("retires a worker whose activation exhausted a limit that the worker reported itself", async () => {
    const { clock, backend, start } = harness({ spares: 0 });
    const run = start("a", "x");
    await rest(clock);
    const worker = only(backend.running("x"));
    worker.end({ status: "budget_exceeded", reason: "memory", limit: 10, used: 11 });
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/memory");
    expect(worker.killed).toBe(true);
  });
});

describe("waiting", () => {
  it("serves flows in rotation when workers are scarce", async () => {
    const { clock, backend, start } = harness({ spares: 0, workersMax: 1 });
    for (let i = 0; i < 4; i++) start("a", "a");
    for (let i = 0; i < 2; i++) start("b", "b");
    start("c", "c");
    const order: string[] = [];
    for (let i = 0; i < 7; i++) {
      await rest(clock);
      clock.advance(25);
      await rest(clock);
      const worker = only(backend.live.filter(({ last, killed }) => !killed && last?.kind === "activate"));
      const { last } = worker;
      order.push(last?.kind === "activate" ? last.script : "");
      worker.finish();
    }
    expect(order).toEqual(["a", "b", "c", "a", "b", "a", "a"]);
  });

  it("lets a flow go on with its worker while no other flow has waited for a turn", async () => {
    const { clock, backend, start } = harness({ spares: 0, workersMax: 1 });
    for (let i = 0; i < 3; i++) start("a", `a${i}`);
    await rest(clock);
    start("b", "b");
    only(backend.running("a0")).finish();
    await rest(clock);
    only(backend.running("a1")).finish();
    await rest(clock);
    expect(backend.workers.length).toBe(1);
    clock.advance(25);
    only(backend.running("a2")).finish();
    await rest(clock);
    expect(backend.running("b").length).toBe(1);
  });

  it("answers queue_timeout at the deadline, counted from the request, and never starts that activation", async () => {
    const { clock, backend, start } = harness({ spares: 0, workersMax: 1 });
    start("a", "long");
    await rest(clock);
    const waiter = start("b", "waiter", { queueDeadlineMs: 200 });
    clock.advance(199);
    await ticks();
    expect(outcome(waiter.result)).toBe("no result");
    clock.advance(1);
    await ticks();
    expect(outcome(waiter.result)).toBe("overloaded/queue_timeout");
    expect(waiter.result).toMatchObject({
      started: false,
      worker: null,
      calls: [],
      usage: { queuedMs: 200, wallMs: 0 },
    });
    only(backend.running("long")).finish();
    await rest(clock);
    clock.advance(1000);
    await rest(clock);
    expect(backend.workers.flatMap(({ received }) => received).length).toBe(1);
  });

  it("counts the start of a process in the wait and not in the script's time", async () => {
    const { clock, backend, start } = harness({ spares: 0, startDeadlineMs: 5000 }, (b) => {
      b.autoWelcome = false;
    });
    const patient = start("a", "patient");
    const hasty = start("b", "hasty", { queueDeadlineMs: 100 });
    clock.advance(300);
    backend.workers[0]?.welcome();
    await rest(clock);
    expect(outcome(hasty.result)).toBe("overloaded/queue_timeout");
    only(backend.running("patient")).finish();
    await rest(clock);
    expect(patient.result?.usage).toMatchObject({ queuedMs: 300, wallMs: 0 });
  });

  it("answers a cancelled waiter at once and never starts it", async () => {
    const { clock, backend, start } = harness({ spares: 0, workersMax: 1 });
    start("a", "long");
    await rest(clock);
    const cancel = new AbortController();
    const waiter = start("a", "waiter", { signal: cancel.signal });
    cancel.abort();
    await ticks();
    expect(outcome(waiter.result)).toBe("cancelled/caller");
    only(backend.running("long")).finish();
    await rest(clock);
    expect(backend.running("waiter")).toEqual([]);
    const already = start("a", "already", { signal: cancel.signal });
    await ticks();
    expect(outcome(already.result)).toBe("cancelled/caller");
  });

  it("refuses what does not fit into the queue, by flow and in all", async () => {
    const { clock, start } = harness({ spares: 0, workersMax: 1, queueMax: 2, queueTotalMax: 3 });
    start("a", "runs");
    await rest(clock);
    const waiting = [start("a", "1"), start("a", "2")];
    const overFlow = start("a", "3");
    waiting.push(start("b", "4"));
    const overAll = start("c", "5");
    await ticks();
    expect(waiting.map(({ result }) => outcome(result))).toEqual(["no result", "no result", "no result"]);
    expect([outcome(overFlow.result), outcome(overAll.result)]).toEqual([
      "overloaded/queue_full",
      "overloaded/queue_full",
    ]);
    expect(overFlow.result?.error?.message).toContain("flow's queue of 2");
  });
});

describe("starts that fail", () => {
  it("names the fact that failed, kills the worker before a byte is sent, and pauses 250 ms, then twice as long", async () => {
    const { clock, backend, pool, start } = harness({ spares: 0 }, (b) => {
      b.refuseFact = "landlockAbi";
    });
    const first = start("a", "x");
    await rest(clock);
    expect(outcome(first.result)).toBe("sandbox_unavailable/welcome_refused");
    expect(first.result?.error).toMatchObject({ fact: "landlockAbi" });
    expect(first.result?.started).toBe(false);
    expect(backend.workers.map(({ killed, writes }) => [killed, writes])).toEqual([[true, []]]);

    const second = start("a", "x");
    clock.advance(249);
    await rest(clock);
    expect(backend.workers.length).toBe(1);
    expect(outcome(second.result)).toBe("no result");
    clock.advance(1);
    await rest(clock);
    expect(outcome(second.result)).toBe("sandbox_unavailable/welcome_refused");
    expect(pool.health().starts).toMatchObject({ failuresInARow: 2, retryInMs: 500 });
    expect(pool.health().startsRefused).toEqual({ "welcome_refused/landlockAbi": 2 });
  });

  it("forgets the failures with the first accepted worker", async () => {
    const { clock, backend, pool, start } = harness({ spares: 0 }, (b) => {
      b.failStart = "clone";
    });
    const failed = start("a", "x");
    await rest(clock);
    expect(outcome(failed.result)).toBe("sandbox_unavailable/spawn_failed");
    expect(failed.result?.error?.fact).toBe("clone");
    backend.failStart = null;
    const good = start("a", "good");
    clock.advance(250);
    await rest(clock);
    only(backend.running("good")).finish();
    await rest(clock);
    expect(outcome(good.result)).toBe("completed");
    expect(pool.health().starts).toMatchObject({ failuresInARow: 0, retryInMs: 0 });
  });

  it("does not let anybody wait for a next try after three failures in a row, or beyond their own deadline", async () => {
    const { clock, start } = harness({ spares: 0 }, (b) => {
      b.failStart = "exec";
    });
    start("a", "x");
    await rest(clock);
    const hasty = start("a", "hasty", { queueDeadlineMs: 100 });
    await rest(clock);
    expect(outcome(hasty.result)).toBe("sandbox_unavailable/backing_off");
    expect(hasty.result?.error).toMatchObject({ fact: "exec" });
    for (const pause of [250, 500]) {
      start("a", "x");
      clock.advance(pause);
      await rest(clock);
    }
    const late = start("a", "late");
    await rest(clock);
    expect(outcome(late.result)).toBe("sandbox_unavailable/backing_off");
  });

  it("keeps serving a flow from its live worker while starts fail", async () => {
    const { clock, backend, start } = harness({ spares: 0, workersMax: 4 });
    start("a", "first");
    await rest(clock);
    const worker = only(backend.running("first"));
    backend.failStart = "clone";
    const waiting = start("a", "second");
    await rest(clock);
    expect(outcome(waiting.result)).toBe("no result");
    worker.finish();
    await rest(clock);
    expect(only(backend.running("second"))).toBe(worker);
    worker.finish();
    await rest(clock);
    expect(outcome(waiting.result)).toBe("completed");
  });

  it("refuses a Welcome that is late, one with bytes behind it, one that is cut, and what is none", async () => {
    const { clock, backend, start } = harness({ spares: 0, startDeadlineMs: 100, workersMax: 8 }, (b) => {
      b.autoWelcome = false;
    });
    const acts: ((worker: FakeWorker) => void)[] = [
      () => clock.advance(100),
      (worker) => {
        const welcome = Buffer.from([10, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0x7b, 0x7d]);
        worker.bytes(Buffer.concat([welcome, Buffer.from([1])]));
      },
      (worker) => {
        worker.bytes(Buffer.from([10, 0, 0, 0, 1, 0, 0]));
        worker.die({ code: 0 });
      },
      (worker) => worker.send(finished({ status: "completed", warnings: [], hostCalls: 0 }, "1")),
      (worker) => worker.bytes(Buffer.from([255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0])),
      (worker) => worker.die({ code: 90 }),
      (worker) => worker.die({ signal: "SIGSYS" }),
    ];
    const seen: string[] = [];
    for (const act of acts) {
      const run = start("a", "x");
      await rest(clock);
      const worker = only(backend.live);
      act(worker);
      await rest(clock);
      seen.push(`${outcome(run.result)} ${run.result?.error?.fact}`);
      expect(worker.writes).toEqual([]);
      expect(worker.closed).toBe(true);
      // One good start in between, so that each failure is the first in a row.
      backend.autoWelcome = true;
      const good = start("a", "good", { isolation: "process" });
      clock.advance(250);
      await rest(clock);
      only(backend.running("good")).finish();
      await rest(clock);
      expect(outcome(good.result)).toBe("completed");
      backend.autoWelcome = false;
    }
    expect(seen).toEqual([
      "sandbox_unavailable/welcome_late startDeadlineMs",
      "sandbox_unavailable/welcome_refused early_bytes",
      "sandbox_unavailable/start_failed unknown",
      "sandbox_unavailable/welcome_refused unexpected_message",
      "sandbox_unavailable/welcome_refused too_long",
      "sandbox_unavailable/start_failed landlock_missing",
      "sandbox_unavailable/start_failed signal",
    ]);
  });
});

describe("idle workers", () => {
  it("kills one that speaks, and counts it for its flow", async () => {
    const { clock, backend, pool, events, start } = harness({ spares: 1 });
    await rest(clock);
    start("a", "x");
    const worker = only(backend.running("x"));
    worker.finish();
    await rest(clock);
    worker.bytes(Buffer.from([0]));
    expect(worker.killed).toBe(true);
    expect(pool.health().violations).toEqual({ unexpected_message: 1 });
    expect(pool.health().deathsByFlow[flow]).toMatchObject({ violations: 1 });
    expect(events.map(({ kind }) => kind)).toEqual(["violation"]);
    await rest(clock);
    start("a", "again");
    await rest(clock);
    expect(backend.running("again").length).toBe(1);
  });

  it("kills one that burns CPU time, forgives what a reset costs, and looks again and again", async () => {
    const { clock, backend, pool, start } = harness({ spares: 1, inspectMs: 1000 });
    await rest(clock);
    start("a", "x");
    const worker = only(backend.running("x"));
    worker.finish();
    worker.cpu += 500_000;
    clock.advance(1000);
    for (let i = 0; i < 5; i++) clock.advance(1000);
    expect(worker.killed).toBe(false);
    worker.cpu += 30_000;
    clock.advance(1000);
    expect(worker.killed).toBe(true);
    expect(pool.health().violations).toEqual({ idle_cpu: 1 });
    await rest(clock);
    expect(backend.live.length).toBe(1);
  });

  it("replaces a spare that died, after a pause, so that one which always dies is not restarted for ever", async () => {
    const { clock, backend, pool } = harness({ spares: 1 });
    await rest(clock);
    backend.workers[0]?.die({ signal: "SIGKILL" });
    await rest(clock);
    expect(backend.live.length).toBe(0);
    clock.advance(250);
    await rest(clock);
    expect(backend.live.length).toBe(1);
    expect(pool.health().workers).toMatchObject({ total: 1, spare: 1 });
    expect(pool.health().deaths).toEqual({ SIGKILL: 1 });
  });
});

describe("running workers", () => {
  it("are killed when the process occupies more than its engine may use, and not before", async () => {
    const { clock, backend, pool, start } = harness({ spares: 0, inspectMs: 1000 });
    const run = start("a", "x");
    await rest(clock);
    const worker = only(backend.running("x"));
    worker.memory = testRequest("a", "").limits.heapBytes + (90 << 20);
    clock.advance(3000);
    expect(worker.killed).toBe(false);
    worker.memory += 10 << 20;
    clock.advance(1000);
    await rest(clock);
    expect(outcome(run.result)).toBe("violation/memory");
    expect(pool.health().violations).toEqual({ memory: 1 });
  });
});

describe("close", () => {
  it("answers waiters and running activations, ends every process, leaves no timer, and may be called twice", async () => {
    const { clock, backend, pool, start } = harness({ spares: 1, workersMax: 2 });
    await rest(clock);
    const aborted: unknown[] = [];
    const running = start("a", "runs", {
      onHostCall: (call) =>
        new Promise(() => {
          call.signal.addEventListener("abort", () => aborted.push(call.position));
        }),
    });
    const worker = only(backend.running("runs"));
    worker.send(hostCall(0, "slow"));
    start("b", "runs too");
    await rest(clock);
    const waiting = start("c", "waits");
    const first = pool.close();
    expect(pool.close()).toBe(first);
    await rest(clock);
    await first;
    expect([outcome(running.result), outcome(waiting.result)]).toEqual([
      "cancelled/closing",
      "cancelled/closing",
    ]);
    expect(running.result?.calls).toMatchObject([{ state: "unknown", name: "slow" }]);
    expect(aborted).toEqual([0]);
    expect(backend.live).toEqual([]);
    expect(clock.armed).toBe(0);
    const after = start("a", "after");
    await ticks();
    expect(outcome(after.result)).toBe("cancelled/closing");
    expect(pool.health()).toMatchObject({ closed: true, waiting: 0, workers: { total: 0 } });
  });

  it("does not begin what is asked for while it closes", async () => {
    const { clock, backend, pool, start } = harness({ spares: 0, workersMax: 2 });
    const again: ReturnType<typeof start>[] = [];
    const running = start("a", "runs", {
      onHostCall(call) {
        call.signal.addEventListener("abort", () => again.push(start("b", "again")));
        return new Promise(() => {});
      },
    });
    await rest(clock);
    only(backend.running("runs")).send(hostCall(0, "slow"));
    await pool.close();
    await ticks();
    expect(outcome(running.result)).toBe("cancelled/closing");
    expect(again.map(({ result }) => outcome(result))).toEqual(["cancelled/closing"]);
    expect(backend.workers.length).toBe(1);
  });

  it("waits for a process that takes its time to die", async () => {
    const { clock, backend, pool } = harness({ spares: 1 });
    await rest(clock);
    const worker = only(backend.live);
    worker.diesAtOnce = false;
    let closed = false;
    const closing = pool.close().then(() => {
      closed = true;
    });
    await rest(clock);
    clock.advance(3000);
    await ticks();
    expect(closed).toBe(false);
    worker.die({ signal: "SIGKILL" });
    await closing;
    expect(closed).toBe(true);
  });
});

describe("requests and options", () => {
  it("refuses what cannot be run, with the reason, without a worker", async () => {
    const { clock, backend, start } = harness({ spares: 0 });
    const wrong: [string, Partial<ActivationRequest>][] = [
      ["invalid_input/request", { flow: "" }],
      ["invalid_input/request", { flow: "x".repeat(257) }],
      ["invalid_input/request", { seed: new Uint8Array(31) }],
      ["invalid_input/request", { names: [""] }],
      ["invalid_input/request", { clock: { epochMs: Number.NaN, mode: "real" } }],
      ["invalid_input/source_too_large", { script: "x".repeat(3 << 20) }],
      ["invalid_input/input_too_large", { input: json("x".repeat(17 << 20)) }],
      [
        "invalid_input/input_too_large",
        { input: { text: "null", devalue: false, attachments: [new Uint8Array(17 << 20)] } },
      ],
      ["invalid_input/limits", { limits: { ...testRequest("a", "").limits, cpuMs: Number.NaN } }],
    ];
    const results = wrong.map(([, more]) => start("a", "x", more));
    await rest(clock);
    expect(results.map(({ result }) => outcome(result))).toEqual(wrong.map(([expected]) => expected));
    expect(backend.workers).toEqual([]);
  });

  it("refuses a request that is none, and goes on", async () => {
    const { clock, backend, pool, start } = harness({ spares: 0 });
    const nonsense = [
      { input: undefined },
      { script: 7 },
      { limits: null },
      { names: "x" },
      { seed: "x" },
    ] as object[];
    const results = nonsense.map((more) => start("a", "x", more));
    await rest(clock);
    for (const { result } of results) expect(outcome(result)).toMatch(/^invalid_input\/(request|limits)$/);
    const broken = start("a", "x", { seed: { byteLength: 32 } as Uint8Array });
    await rest(clock);
    expect(outcome(broken.result)).toBe("internal/bug");
    start("a", "good");
    await rest(clock);
    only(backend.running("good")).finish();
    await rest(clock);
    expect(pool.health().workers.running).toBe(0);
  });

  it("shares one listener among the activations that carry one signal", async () => {
    const { clock, start } = harness({ spares: 0, workersMax: 1 });
    const cancel = new AbortController();
    const runs = Array.from({ length: 30 }, (_, n) => start(`f${n}`, "x", { signal: cancel.signal }));
    await rest(clock);
    expect(getEventListeners(cancel.signal, "abort").length).toBe(1);
    cancel.abort();
    await rest(clock);
    expect(new Set(runs.map(({ result }) => outcome(result)))).toEqual(new Set(["cancelled/caller"]));
    expect(getEventListeners(cancel.signal, "abort").length).toBe(0);
  });

  it("refuses options that are unknown or out of range, by name", () => {
    const make = (options: object) => () => new Pool(new FakeBackend(), options, new FakeClock());
    expect(make({ maxWorkers: 3 })).toThrow(/unknown pool option maxWorkers/);
    expect(make({ workersMax: 0 })).toThrow(/workersMax must be a whole number from 1/);
    expect(make({ spares: 5, workersMax: 2 })).toThrow(/spares \(5\) must not exceed workersMax \(2\)/);
    expect(make({ idleMs: 0.5 })).toThrow(/idleMs/);
  });
});
