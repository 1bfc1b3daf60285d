// Runs in real workers, over both stores: every effect, suspended and resumed by a true replay; workers killed with SIGKILL;
// a runner that ends at any unit; cancels, deadlines, signals and approvals.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleSource } from "@flowcell/bundle";
import { HostError, type HostFunction } from "@flowcell/host";
import { MemoryStore, openSqliteStore, type RunRow, type Store } from "@flowcell/journal";
import { createPool, type Pool } from "@flowcell/pool";
import { encodeValue, limitCeilings, parseLimits, profileLimits } from "@flowcell/protocol";
import { defaultPolicy, preparePlan, type WorkerConfinement } from "@flowcell/sandbox";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Runnable } from "../../packages/flows/src/ports.js";
import { type Cut, cuttingStore } from "../../packages/flows/src/testing/cutting-store.js";
import {
  freeFunctions,
  Harness,
  type HarnessOptions,
  makeRunnable,
  newRun,
  resultOf,
  row,
} from "../../packages/flows/src/testing/engine-harness.js";
import { HandGiven } from "../../packages/flows/src/testing/hand-given.js";
import { referenceResult, World } from "../../packages/flows/src/testing/world.js";
import { childrenOf } from "../parent/processes.js";

const folder = mkdtempSync(join(tmpdir(), "flowcell-engine-"));
let pool: Pool<WorkerConfinement>;
const open: { close(): Promise<void> }[] = [];

beforeAll(() => {
  const { result } = preparePlan(defaultPolicy("flow"));
  if (!result.ok) throw new Error(result.failure.blockers.map(({ message }) => message).join(" "));
  pool = createPool({ plan: result.plan, spares: 1, workersMax: 4 });
});

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

afterAll(async () => {
  await pool.close();
  rmSync(folder, { recursive: true, force: true });
});

let files = 0;
const stores: readonly [string, () => Promise<Store>][] = [
  ["in memory", async () => new MemoryStore()],
  ["SQLite", () => openSqliteStore({ path: join(folder, `${files++}.db`), durability: "normal" })],
];

type LaboratoryOptions = Partial<Omit<HarnessOptions, "scripts" | "pool" | "gate">>;

/** A runner for one script in real workers. */
class Laboratory {
  readonly harness: Harness;

  constructor(runnable: Runnable, store: Store, options: LaboratoryOptions = {}) {
    this.harness = new Harness({
      ...options,
      store,
      pool,
      scripts: {},
      gate: async () => ({ ok: true, runnable }),
    });
    open.push(this.harness.runner);
  }

  start(input?: unknown, more: Partial<ReturnType<typeof newRun>> = {}): Promise<string> {
    return this.harness.start("flow", input, more);
  }

  async result(runId: string): Promise<unknown> {
    const run = await this.harness.end(runId);
    if (run.status !== "completed") throw new Error(`${run.status}: ${run.errorJson}`);
    return resultOf(run);
  }
}

/** `body` of `async (input, host) => { … }`. */
async function runnableOf(
  body: string,
  functions: readonly HostFunction[] = [],
  limits: Readonly<Record<string, number>> = {},
): Promise<Runnable> {
  const bundled = await bundleSource(`export default async (input, host) => { ${body} }`, {
    sourceBytes: 65_536,
  });
  if (!bundled.ok) throw new Error(bundled.failure.message);
  const parsed = parseLimits(limits, profileLimits("flow"), limitCeilings);
  if (!parsed.ok) throw new Error(parsed.message);
  return makeRunnable(bundled.script.text, [...freeFunctions, ...functions], parsed.limits);
}

async function opened(make: () => Promise<Store>): Promise<Store> {
  const store = await make();
  open.push(store);
  return store;
}

/** The world's reference flow, as a script. */
const reference = `
  console.log("begin");
  const first = await host.world.read("a");
  const counts = [];
  for (let n = 0; n < 3; n++) {
    const count = (await host.kv.get("count")) ?? 0;
    counts.push(await host.kv.compareAndSet("count", count === 0 ? undefined : count, count + 1));
  }
  const ordered = await host.world.order("x");
  const printed = await host.world.print("p");
  await host.sleep(15);
  const [appended, second, failed] = await Promise.all([
    host.world.append("q"), host.world.read("b"), host.world.fail().catch((error) => error.message),
  ]);
  await new Promise((resolve) => setTimeout(resolve, 15));
  const signal = await host.signal.wait("go");
  console.log("end");
  const last = await Promise.all([host.world.order("y"), host.kv.get("count")]);
  return [first, counts, ordered, printed, appended, second, failed, signal, last];`;

/** Sends the signal for which the reference flow waits, once. */
async function sendGo(store: Store, runId: string): Promise<boolean> {
  const at = Date.now();
  const value = encodeValue("went");
  const sent = await store.commit({
    operations: [{ kind: "sendSignal", runId, name: "go", value, signalId: "one", at }],
  });
  return sent.ok && sent.results[0]?.kind === "sent" && sent.results[0].sent;
}

function killWorkers(): number {
  const workers = childrenOf(process.pid).filter(({ name }) => name === "worker");
  for (const { pid } of workers) process.kill(pid, "SIGKILL");
  return workers.length;
}

describe.each(stores)("over a store %s", (_, make) => {
  test("every effect, live", async () => {
    const world = new World();
    const store = await opened(make);
    const { harness } = new Laboratory(await runnableOf(reference, world.functions()), store);
    const runId = await harness.start("flow");
    await harness.rest(runId);
    await sendGo(store, runId);
    harness.runner.signalled(runId, "go");
    const run = await harness.end(runId);
    expect(run).toMatchObject({ status: "completed", activations: 2 });
    expect(resultOf(run)).toEqual(referenceResult);
    expect(world.printed).toEqual(new Map([["p", 1]]));
    expect([...world.orders.values()]).toEqual([1, 1]);
    expect((await store.logs(runId)).map(({ text }) => text)).toEqual(["begin", "end"]);
    expect(run.cpuUs).toBeGreaterThan(0);
    expect(run.heapPeakBytes).toBeGreaterThan(0);
    expect(JSON.parse(run.confinementJson ?? "null")).toMatchObject({});
  });

  test("every effect, suspended wherever it can be", async () => {
    const world = new World();
    const store = await opened(make);
    const lab = new Laboratory(await runnableOf(reference, world.functions()), store, { suspendAfterMs: 0 });
    const runId = await lab.start();
    // It may be suspended for its sleep and its timer; for the signal it must be.
    await lab.harness.until(() => lab.harness.suspended.some(({ dueAt }) => dueAt === null));
    await sendGo(store, runId);
    lab.harness.runner.signalled(runId, "go");
    expect(await lab.result(runId)).toEqual(referenceResult);
    expect(world.printed).toEqual(new Map([["p", 1]]));
    expect(world.appended).toEqual(new Map([["q", 1]]));
    expect([...world.orders.values()]).toEqual([1, 1]);
    expect(world.reads).toBe(2);
    expect((await store.logs(runId)).map(({ text }) => text)).toEqual(["begin", "end"]);
  });

  test("all, race, any and allSettled see in a replay what they saw live", async () => {
    const hand = new HandGiven();
    const body = `
      const order = [];
      const take = (name) => host.answer(name).then((value) => order.push(value));
      await Promise.all(["a", "b", "c"].map(take));
      const first = await Promise.race([host.answer("d"), host.answer("e")]);
      const any = await Promise.any([host.answer("fails"), host.answer("f")]);
      const settled = await Promise.allSettled([host.answer("fails"), host.answer("g")]);
      const random = Math.random();
      await host.signal.wait("go");
      return [order, first, any, settled.map(({ status }) => status), random === Math.random(), Date.now()];`;
    const store = await opened(make);
    const lab = new Laboratory(await runnableOf(body, hand.functions), store);
    const runId = await lab.start();
    for (const name of ["b", "c", "a", "e", "f", "g", "d"]) await hand.give(lab.harness, runId, name);
    await lab.harness.rest(runId);
    await lab.harness.signal(runId, "go");
    const result = (await lab.result(runId)) as unknown[];
    expect(result.slice(0, 5)).toEqual([["b", "c", "a"], "e", "f", ["rejected", "fulfilled"], false]);
    const history = await store.history(runId);
    expect(history?.run.activations).toBeGreaterThanOrEqual(2);
    expect(result[5]).toBe(history?.deliveries.at(-1)?.guestClockMs);
  });

  test("a worker that is killed in the middle is replaced, and the run completes by replay", async () => {
    const world = new World();
    const store = await opened(make);
    const lab = new Laboratory(await runnableOf(reference, world.functions()), store);
    const runId = await lab.start();
    await lab.harness.until(() => world.printed.size > 0);
    expect(killWorkers()).toBeGreaterThan(0);
    await sendGo(store, runId);
    lab.harness.runner.signalled(runId, "go");
    expect(await lab.result(runId)).toEqual(referenceResult);
    expect(world.printed).toEqual(new Map([["p", 1]]));
    expect(world.appended).toEqual(new Map([["q", 1]]));
    const run = await store.run(runId);
    expect(run?.activations).toBeGreaterThanOrEqual(2);
  });

  test("an approval is asked for without a worker, and its answer goes on", async () => {
    const body = `
      const answer = await host.approval.request("Deploy?", { detail: { to: input } });
      return [answer.approved, answer.value, answer.by];`;
    const store = await opened(make);
    const lab = new Laboratory(await runnableOf(body), store);
    const runId = await lab.start("prod");
    expect(await lab.harness.rest(runId)).toMatchObject({ reason: "waiting", dueAt: null });
    const [wait] = await store.waits();
    expect(wait?.wait).toEqual({
      kind: "approval",
      title: "Deploy?",
      detail: encodeValue({ to: "prod" }),
      timeoutMs: null,
    });
    const answer = encodeValue({ approved: true, value: new Date(7), by: "ada" });
    lab.harness.runner.waitDone(runId, wait?.position ?? -1, { ok: true, value: answer });
    expect(await lab.result(runId)).toEqual([true, new Date(7), "ada"]);
  });

  test("keys and values are one for all runs of a flow, and no update is lost", async () => {
    const body = `
      for (let n = 0; n < 10; n++) {
        for (;;) {
          const count = await host.kv.get("count");
          if (await host.kv.compareAndSet("count", count, (count ?? 0) + 1)) break;
        }
      }`;
    const store = await opened(make);
    const lab = new Laboratory(await runnableOf(body), store);
    const runs = await Promise.all(Array.from({ length: 4 }, () => lab.start()));
    for (const runId of runs) await lab.result(runId);
    const reader = new Laboratory(
      await runnableOf('return [await host.kv.get("count"), await host.kv.list()]'),
      store,
    );
    expect(await reader.result(await reader.start())).toEqual([40, ["count"]]);
  });

  test("cut at units all along, it ends as it could have ended uncut", async () => {
    const uncut = await live(make, []);
    expectAllowed(uncut);
    // Every unit is cut in the unit tests; with real workers, those of one residue, kept and lost in turn.
    for (let at = 1; at < uncut.units; at += 3) {
      expectAllowed(await live(make, [{ at, kept: at % 2 === 0 }]));
    }
  });
});

interface Lived {
  readonly world: World;
  readonly run: RunRow;
  readonly units: number;
}

function expectAllowed({ world, run }: Lived): void {
  expect(run.status, run.errorJson ?? "").toBe("completed");
  expect(resultOf(run)).toEqual(referenceResult);
  expect(world.printed).toEqual(new Map([["p", 1]]));
  expect(world.appended).toEqual(new Map([["q", 1]]));
  expect(world.orders.size).toBe(2);
}

/** The reference flow in runners that are cut off, then in one that is not. */
async function live(make: () => Promise<Store>, cuts: readonly Cut[]): Promise<Lived> {
  const world = new World();
  const store = await make();
  const runnable = await runnableOf(reference, world.functions());
  const first = newRun("flow");
  const { runId } = first;
  await store.commit({ operations: [{ kind: "createRun", run: first }] });
  await sendGo(store, runId);
  let units = 0;
  for (const cut of [...cuts, null]) {
    const cutting = cuttingStore(store, cut);
    const { harness } = new Laboratory(runnable, cutting.store, { suspendAfterMs: 5 });
    harness.runner.adopt(runId);
    const end = await harness.until(async () => {
      if (harness.storeFailures.length > 0) return "cut";
      const now = await store.run(runId);
      if (now?.status === "needs_reconcile") await operate(harness, world, store, runId);
      return now?.state === "finished" && now;
    });
    units = cutting.units();
    await harness.runner.close();
    expect(harness.failures).toEqual([]);
    if (end !== "cut") break;
  }
  const run = await store.run(runId);
  await store.close();
  if (run === null) throw new Error("the run is gone");
  return { world, run, units };
}

/** Says what an operator says who can look at the world. */
async function operate(harness: Harness, world: World, store: Store, runId: string): Promise<void> {
  const history = await store.history(runId);
  for (const { position, unknownReason } of history?.calls ?? []) {
    if (unknownReason === null) continue;
    const outcome = { ok: true, value: encodeValue("printed p") } as const;
    harness.runner.reconcile(
      runId,
      position,
      world.printed.has("p") ? { kind: "observed", outcome } : { kind: "not_applied" },
    );
  }
}

describe("in real workers", () => {
  const store = new MemoryStore();

  test("a call that the script cancels ends at once, and its handler is told", async () => {
    let aborted = 0;
    const slow = row("slow", "read", (_args, { signal }) => {
      signal.addEventListener("abort", () => {
        aborted += 1;
      });
      return new Promise(() => undefined);
    });
    const body = `
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 20);
      const slow = await host.slow({ signal: controller.signal }).catch((error) => error.name);
      const wait = await host.signal.wait("go", { signal: AbortSignal.timeout(20) }).catch((error) => error.name);
      return [slow, wait];`;
    const lab = new Laboratory(await runnableOf(body, [slow]), store);
    expect(await lab.result(await lab.start())).toEqual(["AbortError", "TimeoutError"]);
    expect(aborted).toBe(1);
  });

  test("an operator's cancel ends the run and its worker", async () => {
    let begun = 0;
    const slow = row("slow", "once", (_args, { signal }) => {
      begun += 1;
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new HostError("cancelled", "nothing was sent")));
      });
    });
    const lab = new Laboratory(await runnableOf("return await host.slow()", [slow]), store);
    const runId = await lab.start(undefined, { deadlineMs: 4000 });
    await lab.harness.until(() => begun > 0);
    expect(lab.harness.runner.cancel(runId, "ada", "caller")).toBe(true);
    expect(await lab.harness.end(runId)).toMatchObject({ status: "cancelled", cancelRequestedBy: "ada" });
    expect(pool.health().workers.running).toBe(0);
  });

  test("the deadline counts the time that a run is not suspended", async () => {
    const lab = new Laboratory(await runnableOf("await host.sleep(4000); return 1"), store, {
      suspendAfterMs: 0,
    });
    expect(await lab.result(await lab.start(undefined, { deadlineMs: 3500 }))).toBe(1);
    const slow = row("slow", "read", () => new Promise(() => undefined));
    const late = new Laboratory(await runnableOf("return await host.slow()", [slow]), store);
    const run = await late.harness.end(await late.start(undefined, { deadlineMs: 200 }));
    expect(run).toMatchObject({ status: "timed_out", reason: "deadline" });
  });

  test("budgets and errors end the run with their own codes", async () => {
    const spin = new Laboratory(await runnableOf("for (;;);", [], { cpuMs: 50 }), store);
    expect(await spin.harness.end(await spin.start())).toMatchObject({
      status: "budget_exceeded",
      reason: "cpu",
    });
    const thrown = new Laboratory(await runnableOf('throw new TypeError("no")'), store);
    const run = await thrown.harness.end(await thrown.start());
    expect(run).toMatchObject({ status: "script_error", reason: "uncaught" });
    expect(JSON.parse(run.errorJson ?? "")).toEqual({
      code: "uncaught",
      name: "TypeError",
      message: "mapped: no",
    });
    const never = new Laboratory(await runnableOf("await new Promise(() => {})"), store);
    expect(await never.harness.end(await never.start())).toMatchObject({ reason: "deadlock" });
  });

  test("a replay has an allowance of its own: what was used before a suspension is not charged again", async () => {
    const spend = "{ let x = 0; for (let n = 0; n < 3e6; n++) x += n; }";
    const once = new Laboratory(await runnableOf(spend, [], { cpuMs: 20_000 }), store);
    const { cpuUs } = await once.harness.end(await once.start());
    // Enough for each part, with the noise of a busy machine, and not for all six, which the last activation goes through.
    const cpuMs = Math.ceil((3 * cpuUs) / 1000);
    const parts = 6;
    const body = `for (let part = 0; part < ${parts}; part++) { ${spend} await host.signal.wait("go"); } return 1`;
    const lab = new Laboratory(await runnableOf(body, [], { cpuMs }), store);
    const runId = await lab.start();
    for (let part = 1; part <= parts; part++) {
      await lab.harness.rest(runId, part);
      await lab.harness.signal(runId, "go");
    }
    expect(await lab.result(runId)).toBe(1);
    expect((await store.run(runId))?.activations).toBe(parts + 1);
    // Many: the first measurement may have been of a slow moment.
    const unbroken = new Laboratory(await runnableOf(spend.repeat(24), [], { cpuMs }), store);
    expect(await unbroken.harness.end(await unbroken.start())).toMatchObject({ reason: "cpu" });
  });

  test("virtual time: a day of sleep and timers passes at once", async () => {
    const body = `
      const before = Date.now();
      await host.sleep(3_600_000);
      await new Promise((resolve) => setTimeout(resolve, 82_800_000));
      return Date.now() - before;`;
    const lab = new Laboratory(await runnableOf(body), store, { virtualTime: true });
    const runId = await lab.start();
    expect(await lab.result(runId)).toBe(86_400_000);
    expect(lab.harness.suspended).toEqual([]);
  });

  test("a run with a thousand recorded calls resumes, and makes none of them again", async () => {
    const body = `
      let sum = 0;
      for (let n = 0; n < 1000; n++) sum += await host.one();
      await host.signal.wait("go");
      return sum;`;
    let calls = 0;
    const one = row("one", "read", () => {
      calls += 1;
      return 1;
    });
    const lab = new Laboratory(await runnableOf(body, [one], { cpuMs: 10_000 }), store);
    const runId = await lab.start();
    await lab.harness.rest(runId);
    await lab.harness.signal(runId, "go");
    expect(await lab.result(runId)).toBe(1000);
    expect(calls).toBe(1000);
  });
});
