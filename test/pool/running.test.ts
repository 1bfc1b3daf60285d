// Workers that misbehave while a script runs or after it, through the real launcher. All activations of a test share
// one pool: after each liar the next activation is normal.
import { readdirSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import {
  type ActivationRequest,
  type ActivationResult,
  Pool,
  type PoolOptions,
} from "../../packages/pool/src/index.js";
import { openKernelLog } from "../../packages/pool/src/kernel-log.js";
import type { CallOutcome } from "../../packages/protocol/src/index.js";
import { json, type LiarConfinement, Liars, liarBudgets, request, resultValue } from "./liars.js";

const liars = new Liars();
const open: Pool<LiarConfinement>[] = [];

afterEach(async () => {
  for (const pool of open.splice(0)) await pool.close();
});
afterAll(() => liars.remove());

function makePool(
  options: PoolOptions = {},
  behaviour: string | (() => string) = "honest",
): Pool<LiarConfinement> {
  const pool = new Pool(liars.backend(behaviour), { spares: 1, workersMax: 4, ...options });
  open.push(pool);
  return pool;
}

function kernelLogIsReadable(): boolean {
  const log = openKernelLog();
  log?.close();
  return log !== undefined;
}

/** Whether the kernel's log has a word of a filter that killed this process. */
function isLogged(pid: number | undefined): boolean {
  const log = openKernelLog();
  if (log === undefined) return false;
  try {
    for (let line = log.next(); line !== undefined; line = log.next()) {
      if (line.includes("type=1326") && line.includes(` pid=${pid} `)) return true;
    }
    return false;
  } finally {
    log.close();
  }
}

const slow = (): Promise<CallOutcome> =>
  new Promise((resolve) => setTimeout(() => resolve({ ok: true, value: json("slow") }), 200));

function outcome(result: ActivationResult<unknown>): string {
  return result.reason === undefined ? result.status : `${result.status}/${result.reason}`;
}

async function expectHealthy(pool: Pool<LiarConfinement>): Promise<void> {
  const result = await pool.activate(request("hostcall 0 echo [7]\nawait\ndelivered"));
  expect(resultValue(result)).toEqual([7]);
  expect(result.evidence).toEqual([]);
}

describe("honest activations", () => {
  it("carry values of every size in both directions", async () => {
    const pool = makePool();
    for (const size of [0, 1, 1000, 65_535, 65_536, 300_000, 1_000_000]) {
      const input = json("x".repeat(size));
      const result = await pool.activate(request("echo", { input }));
      expect(result.value?.text === input.text).toBe(true);
    }
  });

  it("carry attachments, to the limit of bodyBytes", async () => {
    const pool = makePool();
    const body = new Uint8Array(16 * 1024 * 1024).map((_, index) => index * 31);
    const input = { text: "[0]", devalue: true, attachments: [body.subarray(0, 5), body.subarray(5)] };
    const result = await pool.activate(request("echo", { input }));
    expect(result.value?.devalue).toBe(true);
    const back = result.value?.attachments ?? [];
    expect(back.map(({ byteLength }) => byteLength)).toEqual([5, body.byteLength - 5]);
    expect(Buffer.concat(back).equals(body)).toBe(true);
  });

  it("answer a thousand host calls in a row, and many activations at once, each its own", async () => {
    const pool = makePool();
    const result = await pool.activate(request("calls 1000 echo\nreturn 5"));
    expect(resultValue(result)).toBe(5);
    expect(result.calls.length).toBe(1000);
    expect(result.calls.every(({ state }) => state === "done")).toBe(true);
    const many = await Promise.all(
      Array.from({ length: 60 }, (_, n) => {
        const flow = `flow-${n % 3}`;
        return pool.activate(request(`log ${n}\nhostcall 0 echo [${n}]\nawait\ndelivered`, { flow }));
      }),
    );
    many.forEach((one, n) => {
      expect(resultValue(one)).toEqual([n]);
      expect(one.logs.map(({ text }) => text)).toEqual([String(n)]);
    });
    expect(pool.health().violations).toEqual({});
  });

  it("see timers fire after real time, and at once in virtual time", async () => {
    const pool = makePool();
    const epochMs = 1_700_000_000_000;
    const script = `blocked ${epochMs + 150} 0\nawait\ndelivery`;
    const real = await pool.activate(request(script, { clock: { epochMs, mode: "real" } }));
    expect(resultValue(real)).toMatchObject({ kind: "timer" });
    expect(real.usage.wallMs).toBeGreaterThanOrEqual(149);
    const later = `blocked ${epochMs + 10_000} 0\nawait\ndelivery`;
    const virtual = await pool.activate(request(later));
    expect(resultValue(virtual)).toEqual({ activation: 2, kind: "timer", clock: epochMs + 10_000 });
    expect(virtual.usage.wallMs).toBeLessThan(4000);
  });

  it("are not charged for a cold start", async () => {
    const pool = makePool({ spares: 0 }, "late-1500");
    const result = await pool.activate(request("return 1", { limits: { ...liarBudgets, wallMs: 1000 } }));
    expect(resultValue(result)).toBe(1);
    expect(result.usage.queuedMs).toBeGreaterThan(1000);
  });
});

describe("misconduct", () => {
  const wide: Partial<ActivationRequest> = { onHostCall: () => new Promise(() => {}) };
  const cases: [what: string, script: string, expected: string, more?: Partial<ActivationRequest>][] = [
    ["a repeated position", "hostcall 0 echo []\nhostcall 0 echo []\npause", "violation/bad_position"],
    ["an ungranted name", "hostcall 0 fs.read []\npause", "violation/not_granted"],
    ["too many calls in flight", "flood calls", "violation/too_many_calls", wide],
    ["too many calls in all", "flood calls", "violation/too_many_calls"],
    ["cancelled calls without end", "flood cancels", "violation/too_many_calls", wide],
    ["console output without end", "flood console", "violation/unexpected_message"],
    ["empty lines without end", "flood empty", "violation/unexpected_message"],
    ["Blocked without end", "flood blocked", "violation/unexpected_message"],
    ["a second Welcome", "frame 1 0 {}\npause", "violation/unexpected_message"],
    [
      "a message of the parent",
      'frame 17 0 {"activation":1,"kind":"timer","clock":0}\npause',
      "violation/protocol",
    ],
    ["an unknown type", "frame 9 0 {}\npause", "violation/protocol"],
    [
      "unknown flags",
      'frame 5 2 {"nextTimerAt":null,"openCalls":0,"delivered":0}\npause',
      "violation/protocol",
    ],
    ["an oversized length", "raw ffffff7f0200000000000000\npause", "violation/protocol"],
    ["a frame that contradicts itself", "raw 080000000200000005000000\npause", "violation/protocol"],
    ["bytes that are no UTF-8", "raw 0a0000000500000002000000c080\npause", "violation/protocol"],
    ["a header that is no JSON", "frame 3 0 nonsense\npause", "violation/protocol"],
    ["an unknown field", 'frame 3 0 {"position":0,"more":1}\npause', "violation/protocol"],
    ["an end without a usage report", 'frame 6 0 {"status":"completed"}\\n1\npause', "violation/protocol"],
    ["an end of an unknown status", 'end 6 0 {"status":"fine"}\\n1', "violation/protocol"],
    ["a message cut by its exit", "raw ff0000000400\nexit 0", "violation/protocol"],
    ["a system call outside its filter", "signal 31", "violation/syscall"],
    ["an engine trap", "exit 81", "worker_lost/engine_trap"],
    ["an overrun stack", "exit 82", "budget_exceeded/stack"],
    ["a segmentation fault", "signal 11", "worker_lost/signal"],
    ["an exit code without meaning", "exit 3", "worker_lost/exit"],
    ["an end in good order without an answer", "exit 0", "worker_lost/exit"],
    ["a kill from outside", "signal 9", "worker_lost/signal"],
    ["a closed output", "closeout\npause", "worker_lost/closed"],
  ];
  // Only where the log can be read at all: an ordinary user, a container and an audit daemon take it away.
  it.skipIf(!kernelLogIsReadable())(
    "by a refused system call names the call, as the kernel's log does",
    { timeout: 240_000 },
    async () => {
      const pool = makePool();
      // The kernel writes ten such lines in five seconds and keeps the others to itself; tests beside this one use them up.
      let message = "";
      for (let tries = 0; tries < 6 && !/getppid/.test(message); tries++) {
        if (tries > 0) await delay(6000);
        const result = await pool.activate(request("refused\npause"));
        expect(outcome(result)).toBe("violation/syscall");
        message = result.error?.message ?? "";
        // A line that came when nobody looked any more is not what this is about.
        if (!/getppid/.test(message) && tries === 5)
          expect(isLogged(result.worker?.pid), message).toBe(false);
      }
      expect(message).toMatch(/refuses(?:: getppid \(number \d+\))?$/);
      const unsaid = await pool.activate(request("signal 31"));
      expect(outcome(unsaid)).toBe("violation/syscall");
      expect(unsaid.error?.message).toMatch(/refuses$/);
      const open = readdirSync("/proc/self/fd").map((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`);
        } catch {
          return ""; // the folder's own descriptor
        }
      });
      expect(open).not.toContain("/dev/kmsg");
    },
  );

  it("of every kind has its own outcome, and the next activation on the pool is normal", async () => {
    const pool = makePool();
    for (const [what, script, expected, more] of cases) {
      const result = await pool.activate(request(script, more));
      expect(`${what}: ${outcome(result)}`).toBe(`${what}: ${expected}`);
      expect(result.started).toBe(true);
      expect(result.value).toBeUndefined();
      await expectHealthy(pool);
    }
    const { violations, deathsByFlow, workers } = pool.health();
    expect(violations).toEqual({
      bad_position: 1,
      not_granted: 1,
      too_many_calls: 3,
      unexpected_message: 4,
      protocol: 11,
      syscall: 1,
    });
    expect(deathsByFlow).toEqual({ a: { sigsysDeaths: 1, trapDeaths: 3, violations: 21 } });
    expect(workers.total).toBeLessThanOrEqual(4);
  });

  it("behind the end of an activation leaves the result alone and ends the worker", async () => {
    const pool = makePool();
    const end = '{"status":"completed","warnings":[],"hostCalls":0}\\n1';
    const result = await pool.activate(request(`ends 6 0 ${end}\nends 6 0 ${end}\npause`));
    expect(resultValue(result)).toBe(1);
    for (let i = 0; i < 1000 && pool.health().violations["unexpected_message"] === undefined; i++)
      await delay(20);
    expect(pool.health().violations).toEqual({ unexpected_message: 1 });
    const next = await pool.activate(request("return 2"));
    expect(resultValue(next)).toBe(2);
    expect(next.worker?.pid).not.toBe(result.worker?.pid);
  });

  it("of an idle worker ends it: talking, and burning CPU time", async () => {
    const pool = makePool({ inspectMs: 50, spares: 0 });
    const end = 'ends 6 0 {"status":"completed","warnings":[],"hostCalls":0}\\n1';
    for (const [after, reason] of [
      ["pause 60\nhostcall 1 echo []\npause", "unexpected_message"],
      ["spin", "idle_cpu"],
    ] as const) {
      const before = pool.health().violations[reason] ?? 0;
      expect(resultValue(await pool.activate(request(`${end}\n${after}`)))).toBe(1);
      for (let i = 0; i < 500 && (pool.health().violations[reason] ?? 0) === before; i++) await delay(20);
      expect(pool.health().violations[reason]).toBe(before + 1);
      await expectHealthy(pool);
    }
  });

  it("of a spare ends it: talking, and burning CPU time", async () => {
    for (const [behaviour, reason] of [
      ["talk", "unexpected_message"],
      ["burn", "idle_cpu"],
    ] as const) {
      let starts = 0;
      const pool = makePool({ inspectMs: 50 }, () => (starts++ === 0 ? behaviour : "honest"));
      expect(await pool.ready()).toBeNull();
      for (let i = 0; i < 500 && pool.health().violations[reason] === undefined; i++) await delay(20);
      expect(pool.health().violations).toEqual({ [reason]: 1 });
      await expectHealthy(pool);
    }
  });
});

describe("limits", () => {
  const hasty = { ...liarBudgets, wallMs: 2000, cpuMs: 200 };

  it("end a worker that computes without end by its CPU clock", async () => {
    const pool = makePool();
    const result = await pool.activate(request("spin", { limits: { ...hasty, wallMs: 30_000 } }));
    expect(outcome(result)).toBe("budget_exceeded/cpu");
    expect(result.error).toMatchObject({ code: "cpu", limit: 200 });
    expect(result.usage.cpuMs).toBeGreaterThanOrEqual(250);
    await expectHealthy(pool);
  });

  it("measure CPU time in the parent, whatever the worker reports", async () => {
    const pool = makePool();
    const result = await pool.activate(
      request("spin 120\nreturn 1", { limits: { ...hasty, wallMs: 30_000, cpuMs: 2000 } }),
    );
    expect(outcome(result)).toBe("completed");
    expect(result.usage.cpuMs).toBeGreaterThanOrEqual(110);
  });

  it("end a worker that waits for a call by the wall, abort the call, and list it as unknown", async () => {
    const pool = makePool();
    let signal: AbortSignal | undefined;
    let key = "";
    const result = await pool.activate(
      request("hostcall 0 never []\nblocked null 1\nawait\nreturn 1", {
        limits: hasty,
        onHostCall(call) {
          signal = call.signal;
          key = call.idempotencyKey;
          return new Promise(() => {});
        },
      }),
    );
    expect(outcome(result)).toBe("budget_exceeded/wall");
    expect(signal?.aborted).toBe(true);
    expect(result.calls).toMatchObject([{ name: "never", state: "unknown", idempotencyKey: key }]);
    expect(result.usage.cpuMs).toBeLessThan(100);
    await expectHealthy(pool);
  });

  it("end an endless chain of calls near the wall limit", async () => {
    const pool = makePool();
    const result = await pool.activate(request("calls 100000 slow", { limits: hasty, onHostCall: slow }));
    expect(outcome(result)).toBe("budget_exceeded/wall");
    expect(result.usage.wallMs).toBeGreaterThanOrEqual(2000);
    expect(result.usage.wallMs).toBeLessThan(20_000);
  });

  it("end a worker that stops reading, with what it did not take as evidence", async () => {
    const pool = makePool();
    const big = { ok: true, value: json("x".repeat(1_000_000)) } as const;
    const script = Array.from({ length: 8 }, (_, n) => `hostcall ${n} big []`).join("\n");
    const result = await pool.activate(request(`${script}\npause`, { limits: hasty, onHostCall: () => big }));
    expect(outcome(result)).toBe("budget_exceeded/wall");
    expect(result.evidence.join()).toMatch(/not_reading: the worker had not taken \d{6,} bytes/);
    await expectHealthy(pool);
  });

  it("end a worker that never reads its Activate", async () => {
    let starts = 0;
    const pool = makePool({}, () => (starts++ === 0 ? "deaf" : "honest"));
    const input = json("x".repeat(1_000_000));
    const result = await pool.activate(request("echo", { input, limits: hasty }));
    expect(outcome(result)).toBe("budget_exceeded/wall");
    await expectHealthy(pool);
  });

  it("end a process that occupies more memory than its engine may use", async () => {
    const pool = makePool({ inspectMs: 50 });
    const limits = { ...liarBudgets, heapBytes: 16 << 20, cpuMs: 20_000, wallMs: 40_000 };
    const modest = await pool.activate(request("occupy 60\npause 300\nreturn 1", { limits }));
    expect(resultValue(modest)).toBe(1);
    const greedy = await pool.activate(request("occupy 160\npause", { limits }));
    expect(outcome(greedy)).toBe("violation/memory");
    await expectHealthy(pool);
  });

  it("refuse a value that is too large in place of delivering it", async () => {
    const pool = makePool();
    const onHostCall = (): CallOutcome => ({ ok: true, value: json("x".repeat(2_000_000)) });
    const result = await pool.activate(request("hostcall 0 big []\nawait\ndelivery", { onHostCall }));
    expect(resultValue(result)).toMatchObject({ ok: false, error: { code: "result_too_large" } });
  });
});

describe("cancellation", () => {
  it("kills the worker, aborts its calls, and leaves the pool normal", async () => {
    const pool = makePool();
    const cancel = new AbortController();
    const signals: AbortSignal[] = [];
    const running = pool.activate(
      request("hostcall 0 never []\nawait", {
        signal: cancel.signal,
        onHostCall(call) {
          signals.push(call.signal);
          setTimeout(() => cancel.abort(), 30);
          return new Promise(() => {});
        },
      }),
    );
    const result = await running;
    expect(outcome(result)).toBe("cancelled/caller");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    await expectHealthy(pool);
  });

  it("of a waiter with a deadline of its own: it is answered in time and never starts", async () => {
    const pool = makePool({ workersMax: 1, spares: 0 });
    const started: string[] = [];
    const first = pool.activate(request("pause 700\nreturn 1", { flow: "a" }));
    const second = await pool.activate(
      request("hostcall 0 echo []\nawait\nreturn 2", {
        flow: "b",
        queueDeadlineMs: 200,
        onHostCall() {
          started.push("b");
          return { ok: true, value: json(1) };
        },
      }),
    );
    expect(outcome(second)).toBe("overloaded/queue_timeout");
    expect(resultValue(await first)).toBe(1);
    await delay(100);
    expect(started).toEqual([]);
  });

  it("does not let an outcome that comes after the end disturb anything", async () => {
    const pool = makePool();
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => {
      unhandled.push(reason);
    };
    process.on("unhandledRejection", note);
    const result = await pool.activate(
      request("hostcall 0 slow []\nreturn 1", {
        onHostCall: () => slow().then(() => Promise.reject(new Error("late"))),
      }),
    );
    expect(resultValue(result)).toBe(1);
    expect(result.calls).toMatchObject([{ state: "unknown" }]);
    await delay(300);
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
    await expectHealthy(pool);
  });
});

describe("isolation", () => {
  it("never runs two flows in one process, also when places are scarce", async () => {
    const pool = makePool({ workersMax: 2, spares: 1 });
    const owners = new Map<number, Set<string>>();
    const runs = Array.from({ length: 80 }, async (_, n) => {
      const flow = `f${n % 5}`;
      const result = await pool.activate(request("echo", { flow }));
      expect(outcome(result)).toBe("completed");
      const pid = result.worker?.pid ?? 0;
      owners.set(pid, (owners.get(pid) ?? new Set()).add(flow));
    });
    await Promise.all(runs);
    for (const flows of owners.values()) expect(flows.size).toBe(1);
    expect(owners.size).toBeGreaterThanOrEqual(5);
  });

  it("gives each single-use activation a process of its own that is gone afterwards", async () => {
    const pool = makePool({ spares: 2 });
    const pids = new Set<number>();
    for (let i = 0; i < 20; i++) {
      const result = await pool.activate(request("return 1", { isolation: "process" }));
      expect(result.worker?.activations).toBe(1);
      pids.add(result.worker?.pid ?? 0);
    }
    expect(pids.size).toBe(20);
    await pool.close();
    for (const pid of pids) expect(readdirSync("/proc").includes(String(pid))).toBe(false);
  });
});
