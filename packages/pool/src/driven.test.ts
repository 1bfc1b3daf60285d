// Activations whose driver decides what is delivered and when.
import { messageType } from "@flowcell/protocol";
import { afterEach, describe, expect, it } from "vitest";
import { Pool } from "./pool.js";
import { FakeClock, ticks } from "./testing/fake-clock.js";
import {
  blocked,
  FakeBackend,
  type FakeConfinement,
  type FakeWorker,
  hostCall,
  plain,
} from "./testing/fake-worker.js";
import { epochMs, ok, outcome, testRequest, track } from "./testing/requests.js";
import type { ActivationDriver, ActivationRequest, DrivenActivation } from "./types.js";

const open: Pool<FakeConfinement>[] = [];
afterEach(async () => {
  for (const pool of open.splice(0)) await pool.close();
});

function delivered(worker: FakeWorker) {
  return worker.received.flatMap((message) => (message.kind === "deliver" ? [message] : []));
}

async function start(more: Partial<ActivationRequest>) {
  const clock = new FakeClock();
  const backend = new FakeBackend();
  const pool = new Pool(backend, { spares: 0 }, clock);
  open.push(pool);
  const { onHostCall: _answered, ...request } = testRequest("a", "script");
  const run = track(pool.activate({ ...request, ...more }));
  await ticks();
  return { clock, pool, run, worker: backend.workers[0] };
}

class Recorder implements ActivationDriver {
  readonly seen: string[] = [];
  activation: DrivenActivation | undefined;

  begun(activation: DrivenActivation): void {
    this.activation = activation;
    this.seen.push("begun");
  }

  called({ position, name, args }: { position: number; name: string; args: { text: string } }): void {
    this.seen.push(`called ${position} ${name} ${args.text}`);
  }

  callCancelled(position: number): void {
    this.seen.push(`cancelled ${position}`);
  }

  blocked({ nextTimerAt, openCalls }: { nextTimerAt: number | null; openCalls: number }): void {
    this.seen.push(`blocked ${nextTimerAt} ${openCalls}`);
  }

  get port(): DrivenActivation {
    if (this.activation === undefined) throw new Error("nothing has begun");
    return this.activation;
  }
}

async function driven(more: Partial<ActivationRequest> = {}) {
  const driver = new Recorder();
  const { worker, ...running } = await start({ driver, clock: { epochMs, mode: "driven" }, ...more });
  if (worker === undefined) throw new Error("no worker was started");
  return { ...running, worker, driver };
}

describe("a driven activation", () => {
  it("tells its driver everything and delivers nothing by itself", async () => {
    const { worker, clock, driver } = await driven();
    worker.send(hostCall(0, "echo"), hostCall(1, "slow"), blocked(epochMs + 10, 2));
    clock.advance(5000);
    await ticks();
    expect(driver.seen).toEqual([
      "begun",
      "called 0 echo []",
      "called 1 slow []",
      `blocked ${epochMs + 10} 2`,
    ]);
    expect(delivered(worker)).toEqual([]);
  });

  it("delivers outcomes and timers in the driver's order with the driver's clock, which never goes back", async () => {
    const { worker, driver } = await driven();
    worker.send(hostCall(0, "echo"), hostCall(1, "slow"), blocked(null, 2));
    driver.port.deliver(1, ok("b"), epochMs + 70);
    driver.port.fireTimer(epochMs + 60);
    driver.port.deliver(0, ok("a"), epochMs + 80);
    await ticks();
    expect(delivered(worker).map(({ header }) => header)).toMatchObject([
      { kind: "call", position: 1, clock: epochMs + 70 },
      { kind: "timer", clock: epochMs + 70 },
      { kind: "call", position: 0, clock: epochMs + 80 },
    ]);
  });

  it("passes over a Blocked that was said before everything had arrived", async () => {
    const { worker, driver } = await driven();
    worker.send(hostCall(0, "echo"), blocked(epochMs, 1));
    driver.port.fireTimer(epochMs);
    worker.send(hostCall(1, "echo"));
    driver.port.deliver(0, ok(1), epochMs);
    worker.send(blocked(null, 2, 1));
    expect(driver.seen.filter((line) => line.startsWith("blocked"))).toEqual([`blocked ${epochMs} 1`]);
    worker.send(blocked(null, 1, 2));
    expect(driver.seen.at(-1)).toBe("blocked null 1");
  });

  it("hands a cancellation on and keeps the call open until it is answered", async () => {
    const { worker, driver } = await driven();
    worker.send(hostCall(0, "echo"), plain(messageType.CancelCall, { position: 0 }), blocked(null, 1));
    expect(driver.seen).toEqual(["begun", "called 0 echo []", "cancelled 0", "blocked null 1"]);
    driver.port.deliver(0, ok(1), epochMs);
    expect(() => driver.port.deliver(0, ok(1), epochMs)).toThrow("which is not open");
  });

  it("ends with the driver's verdict by killing the worker, and then ignores the driver", async () => {
    const { worker, driver, run } = await driven();
    worker.send(hostCall(0, "echo"), blocked(null, 1));
    driver.port.end({ status: "suspended", reason: "waiting", message: "it waits" });
    await ticks();
    expect(worker.killed).toBe(true);
    expect(outcome(run.result)).toBe("suspended/waiting");
    driver.port.deliver(0, ok(1), epochMs);
    driver.port.fireTimer(epochMs);
    driver.port.frontier();
    driver.port.end({ status: "cancelled", reason: "caller", message: "again" });
    expect(outcome(run.result)).toBe("suspended/waiting");
  });

  it("has the CPU time of a replay beside its own until the frontier, and its own alone after that", async () => {
    const { worker, clock, driver, run } = await driven({ replayCpuMs: 4000 });
    worker.cpu += 4_500_000;
    clock.advance(4500);
    await ticks();
    expect(worker.killed).toBe(false);
    driver.port.frontier();
    worker.cpu += 1_000_000;
    clock.advance(1000);
    await ticks();
    expect(worker.killed).toBe(false);
    worker.cpu += 60_000;
    clock.advance(60);
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/cpu");
    expect(run.result).toMatchObject({ replayCpuMs: 4500, usage: { cpuMs: 5560 } });
  });

  it("ends a replay that needs more than its allowance", async () => {
    const { worker, clock, run } = await driven({ replayCpuMs: 500 });
    worker.cpu += 1_600_000;
    clock.advance(1600);
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/cpu");
  });

  it("ends as internal when the driver throws, and the pool goes on", async () => {
    const { worker, driver, run, pool } = await driven();
    driver.called = () => {
      throw new Error("a bug of the driver");
    };
    worker.send(hostCall(0, "echo"));
    await ticks();
    expect(outcome(run.result)).toBe("internal/bug");
    expect(pool.health().workers.running).toBe(0);
  });

  it("ends as internal when the driver throws at the start", async () => {
    const driver = new Recorder();
    driver.begun = () => {
      throw new Error("a bug of the driver");
    };
    const { run } = await start({ driver, clock: { epochMs, mode: "driven" } });
    await ticks();
    expect(outcome(run.result)).toBe("internal/bug");
  });

  const driver = new Recorder();
  const whole = { driver, clock: { epochMs, mode: "driven" as const } };

  it.each<[string, Partial<ActivationRequest>]>([
    ["neither driver nor onHostCall", {}],
    ["both", { ...whole, onHostCall: () => ok(1) }],
    ["a clock that it does not move", { ...whole, clock: { epochMs, mode: "virtual" } }],
    ["a clock that nobody moves", { onHostCall: () => ok(1), clock: { epochMs, mode: "driven" } }],
    ["an allowance that is no time", { ...whole, replayCpuMs: -1 }],
    ["a replay without a driver", { onHostCall: () => ok(1), replayCpuMs: 1 }],
  ])("is refused with %s", async (_what, more) => {
    const { run } = await start(more);
    expect(outcome(run.result)).toBe("invalid_input/request");
  });
});
