// The cases from public bug reports that are more than a script and its outcome: what the host process, the pool, the
// worker or a second run sees. reports.ts says which test stands for which report; here it is checked that each exists.
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import type { RuntimeOptions } from "../../packages/flowcell/src/options.js";
import type { RunResult } from "../../packages/flowcell/src/result.js";
import { childrenOf } from "../parent/processes.js";
import { collectGarbage } from "../soak/garbage.js";
import { difference, exceeded, show, sourceOf } from "./case.js";
import { greedy } from "./greedy.js";
import { honest } from "./honest.js";
import { hostile } from "./hostile.js";
import { Laboratory } from "./laboratory.js";
import { reportNumbers, reports } from "./reports.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const open: Laboratory[] = [];

function laboratory(options: RuntimeOptions = {}): Laboratory {
  const made = new Laboratory(options);
  open.push(made);
  return made;
}

afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

function errorOf(result: RunResult): Extract<RunResult, { ok: false }>["error"] {
  if (result.ok) throw new Error(`the run completed: ${show(result)}`);
  return result.error;
}

describe("the table of reports", () => {
  test("has every report of the collection, once", () => {
    expect(reports.map(({ number }) => number)).toEqual(reportNumbers);
  });

  test("names tests that exist, or says where the case is tested instead", () => {
    const cases = new Set([...honest, ...greedy, ...hostile].map(({ name }) => name));
    const texts = new Map<string, string>();
    const missing: string[] = [];
    for (const { number, tests, elsewhere } of reports) {
      if ((tests.length === 0) !== (elsewhere !== undefined))
        missing.push(`${number} has no test and no reason`);
      for (const name of tests) {
        const [, path, title] = /^(test\/[\w/.-]+): (.+)$/.exec(name) ?? [];
        if (path === undefined || title === undefined) {
          if (!cases.has(name)) missing.push(`${number}: ${name}`);
          continue;
        }
        const text = texts.get(path) ?? readFileSync(`${root}${path}`, "utf8");
        texts.set(path, text);
        if (!text.includes(`("${title}"`)) missing.push(`${number}: ${name}`);
      }
    }
    expect(missing).toEqual([]);
  });
});

describe("a script that does not end", () => {
  test("the host's event loop goes on while a script spins", async () => {
    const lab = laboratory();
    let ticks = 0;
    const ticker = setInterval(() => {
      ticks += 1;
    }, 5);
    const { result } = await lab.guest({ body: "while(true){}", limits: { cpuMs: 500, wallMs: 10_000 } });
    clearInterval(ticker);
    expect(difference(result, exceeded("cpu")), show(result)).toBe("");
    // A loop that had stopped would have ticked once or not at all.
    expect(ticks).toBeGreaterThan(10);
  });

  test("a run that ends in a host call fires the call's signal and says that its outcome is unknown", async () => {
    const lab = laboratory();
    const { result } = await lab.guest({
      body: "await t.echo(1); await t.never()",
      limits: { wallMs: 3000 },
    });
    expect(difference(result, exceeded("wall")), show(result)).toBe("");
    expect(lab.host.witness.aborted.get("never")).toBe(1);
    expect(result.calls.map(({ name, state }) => `${name} ${state}`)).toEqual([
      "t.echo done",
      "t.never unknown",
    ]);
    for (const { idempotencyKey, position } of result.calls) {
      expect(idempotencyKey).toBe(`${result.runId}.${position}`);
    }
  });

  test("a chain of slow calls ends at its wall budget, not at the end of a call", async () => {
    const lab = laboratory();
    await lab.guest({ body: "return 1" });
    // Each call takes 200 ms, so the budget passes in the middle of one.
    const { result } = await lab.guest({ body: "for(;;) await t.slow()", limits: { wallMs: 500 } });
    expect(difference(result, exceeded("wall")), show(result)).toBe("");
    expect(result.usage.wallMs).toBeGreaterThanOrEqual(500);
    expect(result.usage.wallMs).toBeLessThan(5000);
    expect(result.calls.at(-1)?.state).toBe("unknown");
    expect(lab.host.witness.aborted.get("slow")).toBe(1);
  });

  test("a run that its caller aborts is cancelled, whatever it does", async () => {
    const lab = laboratory();
    for (const body of ["for(;;);", "await t.never()", "for(;;) await t.echo(1)", "for(;;) console.log(1)"]) {
      const stop = new AbortController();
      const started = lab.runtime.run({ source: sourceOf({ body }), label: "guest.js", signal: stop.signal });
      setTimeout(() => stop.abort(), 50);
      const result = await started;
      expect(result.status, show(result)).toBe("cancelled");
      expect(errorOf(result).code).toBe("caller");
    }
  });
});

describe("memory", () => {
  test("a script that catches its lack of memory has used no more than its cap, and the result shows how much", async () => {
    const lab = laboratory();
    const heapBytes = 16 * 1024 * 1024;
    const body =
      "const c=[]; try{ for(;;)c.push('x'.repeat(1e5)+c.length) }catch(e){ c.length=0; return 'caught' }";
    const { result } = await lab.guest({ body, limits: { heapBytes } });
    expect(result.ok && result.value, show(result)).toBe("caught");
    expect(result.usage.heapPeakBytes).toBeGreaterThan(heapBytes * 0.8);
    expect(result.usage.heapPeakBytes).toBeLessThanOrEqual(heapBytes);
    const idle = await lab.guest({ body: "return 1" });
    expect(idle.result.usage.heapPeakBytes).toBeLessThan(heapBytes * 0.6);
  });

  test("two thousand runs on one pool do not grow this process", { timeout: 300_000 }, async () => {
    const lab = laboratory();
    const run = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i += 4) {
        const four = await Promise.all([1, 2, 3, 4].map(() => lab.guest({ body: "return 1" })));
        expect(four.map(({ result }) => result.ok)).toEqual([true, true, true, true]);
      }
    };
    // V8 lets its young generation grow once, by some 15 MB, and not always within the first thousand.
    await run(3000);
    collectGarbage();
    const before = process.memoryUsage().rss;
    await run(2000);
    collectGarbage();
    expect(process.memoryUsage().rss - before).toBeLessThan(10 * 1024 * 1024);
  });
});

describe("the end of a run", () => {
  test("a host that settles after the end makes no unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", listen);
    try {
      const lab = laboratory();
      const { result } = await lab.guest({ body: "t.slow(); t.late(); t.boom(); throw new Error('end')" });
      expect(errorOf(result).message).toBe("end");
      await delay(500);
      expect((await lab.guest({ body: "return 'next'" })).result).toMatchObject({ ok: true, value: "next" });
    } finally {
      process.off("unhandledRejection", listen);
    }
    expect(unhandled).toEqual([]);
  });

  test("logs with their levels come with every way to fail", async () => {
    const lab = laboratory();
    const heapBytes = 16 * 1024 * 1024;
    const ends: Readonly<Record<string, string>> = {
      "script_error/uncaught": "throw new Error('x')",
      "script_error/unsendable": "return ()=>1",
      "script_error/deadlock": "await new Promise(()=>{})",
      "budget_exceeded/cpu": "for(;;);",
      "budget_exceeded/wall": "await t.never()",
      "budget_exceeded/memory": "const c=[];for(;;)c.push('x'.repeat(1e5)+c.length)",
      "budget_exceeded/stack": "(function f(){f()})()",
      "budget_exceeded/result_size": "return 'x'.repeat(2e6)",
      "denied/denied": "await t.nope()",
    };
    for (const [end, body] of Object.entries(ends)) {
      const { result } = await lab.guest({
        body: `console.log('a');console.error({b:1},[1n]);${body}`,
        // Only what a script is to end by is short: a busy machine is not what ends it.
        limits: {
          heapBytes,
          cpuMs: end.endsWith("cpu") ? 200 : 10_000,
          wallMs: end.endsWith("wall") ? 1000 : 30_000,
        },
      });
      expect(`${result.status}/${errorOf(result).code}`, show(result)).toBe(end);
      expect(
        result.logs.map(({ level, text }) => `${level}: ${text}`),
        end,
      ).toEqual(["log: a", "error: { b: 1 } [ 1n ]"]);
    }
  });

  test("each cause has a code of its own", async () => {
    const lab = laboratory({ workersMax: 1, spares: 0 });
    const seen = new Map<string, string>();
    const note = (cause: string, result: RunResult): void => {
      seen.set(cause, `${result.status}/${result.ok ? "" : result.error.code}`);
    };
    const guest = async (cause: string, body: string, limits: Record<string, number> = {}): Promise<void> =>
      note(cause, (await lab.guest({ body, limits: { cpuMs: 10_000, wallMs: 30_000, ...limits } })).result);
    await guest("the script throws", "throw new Error('x')");
    await guest("the script cannot be parsed", "const = 1");
    note("there is no entry", (await lab.guest({ body: "const x=1", module: true })).result);
    await guest("the result cannot be sent", "return ()=>1");
    await guest("nothing can ever happen", "await new Promise(()=>{})");
    await guest("CPU time", "for(;;);", { cpuMs: 200 });
    await guest("wall time", "await t.never()", { wallMs: 1000 });
    await guest("memory", "const c=[];for(;;)c.push('x'.repeat(1e5)+c.length)", { heapBytes: 16 << 20 });
    await guest("stack", "(function f(){f()})()");
    await guest("number of host calls", "await t.echo(1)", { hostCalls: 0 });
    await guest("size of the result", "return 'x'.repeat(2e6)");
    await guest("a missing grant", "await t.nope()");
    const options = { source: sourceOf({ body: "return 1" }), label: "guest.js" };
    note("a bad limit", await lab.runtime.run({ ...options, limits: { cpuMs: -1 } }));
    note(
      "a large input",
      await lab.runtime.run({ ...options, input: "x".repeat(100), limits: { inputBytes: 16 } }),
    );
    note("a bad input", await lab.runtime.run({ ...options, input: () => 1 }));
    note("a large source", await lab.runtime.run({ ...options, limits: { sourceBytes: 16 } }));
    note("cancelled", await lab.runtime.run({ ...options, signal: AbortSignal.abort() }));
    const blocking = lab.runtime.run({ ...options, source: sourceOf({ body: "await t.slow()" }) });
    note("a wait too long", await lab.runtime.run({ ...options, queueDeadlineMs: 20 }));
    await blocking;
    const codes = [...seen.values()];
    expect(Object.fromEntries(seen)).toEqual({
      "the script throws": "script_error/uncaught",
      "the script cannot be parsed": "script_error/syntax",
      "there is no entry": "script_error/no_entry",
      "the result cannot be sent": "script_error/unsendable",
      "nothing can ever happen": "script_error/deadlock",
      "CPU time": "budget_exceeded/cpu",
      "wall time": "budget_exceeded/wall",
      memory: "budget_exceeded/memory",
      stack: "budget_exceeded/stack",
      "number of host calls": "budget_exceeded/host_calls",
      "size of the result": "budget_exceeded/result_size",
      "a missing grant": "denied/denied",
      "a bad limit": "invalid_input/limits",
      "a large input": "invalid_input/input_too_large",
      "a bad input": "invalid_input/input",
      "a large source": "invalid_input/source_too_large",
      cancelled: "cancelled/caller",
      "a wait too long": "overloaded/queue_timeout",
    });
    expect(new Set(codes).size).toBe(codes.length);
  });
});

describe("several runs", () => {
  test("two runs at once keep their own logs and values", async () => {
    const lab = laboratory();
    const source = sourceOf({
      body: "for(let i=0;i<20;i++){ console.log(input+i); await t.echo(i); if(i%5===0) await new Promise(r=>setTimeout(r,2)) } return input",
    });
    const results = await Promise.all(
      ["A", "B", "C", "D"].map((input) => lab.runtime.run({ source, label: "guest.js", input })),
    );
    for (const [at, letter] of ["A", "B", "C", "D"].entries()) {
      const result = results[at];
      expect(result).toMatchObject({ ok: true, value: letter });
      expect(result?.logs.map(({ text }) => text)).toEqual(
        Array.from({ length: 20 }, (_, i) => `${letter}${i}`),
      );
    }
  });

  test("a run that waited too long is overloaded and never starts", async () => {
    const lab = laboratory({ workersMax: 1, spares: 0 });
    const long = lab.runtime.run({
      source: sourceOf({ body: "await host.sleep(800); return 'A'" }),
      label: "a.js",
    });
    await delay(50);
    const waited = await lab.runtime.run({
      source: sourceOf({ body: "await t.echo('B'); return 'B'" }),
      label: "b.js",
      queueDeadlineMs: 200,
    });
    expect(waited).toMatchObject({ ok: false, status: "overloaded", started: false, logs: [], calls: [] });
    expect(errorOf(waited).code).toBe("queue_timeout");
    expect(waited.usage.queuedMs).toBeGreaterThanOrEqual(199);
    expect(await long).toMatchObject({ ok: true, value: "A" });
    // Time for what must not happen.
    await delay(100);
    expect(lab.host.witness.started.get("echo")).toBeUndefined();
  });

  test("a run that was cancelled while it waited never starts", async () => {
    const lab = laboratory({ workersMax: 1, spares: 0 });
    const stop = new AbortController();
    const long = lab.runtime.run({
      source: sourceOf({ body: "await host.sleep(300); return 'A'" }),
      label: "a.js",
    });
    await delay(50);
    const waiting = lab.runtime.run({
      source: sourceOf({ body: "await t.echo('B'); return 'B'" }),
      label: "b.js",
      signal: stop.signal,
    });
    await delay(50);
    stop.abort();
    expect(await waiting).toMatchObject({ ok: false, status: "cancelled", started: false });
    expect(await long).toMatchObject({ ok: true, value: "A" });
    await delay(100);
    expect(lab.host.witness.started.get("echo")).toBeUndefined();
  });

  test("waiting and time in the worker are told apart", async () => {
    const lab = laboratory({ workersMax: 1, spares: 0 });
    const long = lab.runtime.run({
      source: sourceOf({ body: "await host.sleep(800); return 'A'" }),
      label: "a.js",
    });
    await delay(50);
    const after = await lab.runtime.run({ source: sourceOf({ body: "return 'B'" }), label: "b.js" });
    await long;
    expect(after).toMatchObject({ ok: true, value: "B" });
    expect(after.usage.queuedMs).toBeGreaterThan(0);
    expect(after.usage.wallMs).toBeLessThan(after.usage.queuedMs);
  });

  test("two owners of the same text share no process and no state", async () => {
    const lab = laboratory();
    const source = sourceOf({ body: "const old=globalThis.s; globalThis.s='secret'; return old" });
    const pids = new Set<number | undefined>();
    for (const owner of ["a", "b", "a", "b", undefined]) {
      const { result, worker } = await lab.observe({
        source,
        label: "guest.js",
        ...(owner === undefined ? {} : { owner }),
      });
      expect(result).toMatchObject({ ok: true, value: undefined });
      pids.add(worker?.pid);
    }
    expect(pids.size).toBe(3);
  });
});

describe("workers", () => {
  test("every thread of a worker is filtered and can gain no privilege", async () => {
    const lab = laboratory({ workersMax: 1 });
    const seen: string[] = [];
    const running = lab.guest({ body: "for(let i=0;i<3;i++) await t.slow(); return 1" });
    // Once its script makes a call the only worker has been accepted; before that it is on its way into its confinement.
    while (lab.host.witness.started.get("slow") === undefined) await delay(5);
    const [worker, ...others] = childrenOf(process.pid).filter(({ name }) => name === "worker");
    expect(others).toEqual([]);
    for (let looks = 0; looks < 20; looks++) {
      for (const thread of readdirSync(`/proc/${worker?.pid}/task`)) {
        const status = readFileSync(`/proc/${worker?.pid}/task/${thread}/status`, "utf8");
        const field = (name: string): string =>
          new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(status)?.[1] ?? "";
        seen.push(
          `Seccomp ${field("Seccomp")}, NoNewPrivs ${field("NoNewPrivs")}, Threads ${field("Threads")}`,
        );
      }
      await delay(10);
    }
    const { result } = await running;
    expect(result, show(result)).toMatchObject({ ok: true, value: 1 });
    expect(seen.length).toBe(20);
    expect(new Set(seen)).toEqual(new Set(["Seccomp 2, NoNewPrivs 1, Threads 1"]));
  });

  test("a cold start is not charged to the script", async () => {
    for (let round = 0; round < 3; round++) {
      const lab = laboratory({ spares: 0 });
      const limits = { wallMs: 3000, cpuMs: 1000 };
      const { result } = await lab.guest({ body: "return 1", limits });
      expect(result, show(result)).toMatchObject({ ok: true, value: 1 });
      expect(result.usage.queuedMs).toBeGreaterThan(0);
      await lab.close();
    }
  });
});
