// What becomes of workers when their parent ends, in every way and whatever they are doing; and that a parent which closes
// its pool, or only lets go of it, is left with nothing and kept alive by nothing.
//
// The parents are processes of their own, on a copy of the product, as root and as an ordinary user.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Installed, installProduct, type TestUser, testUsers } from "./installed.js";
import { childrenOf, lives, look, type Seen } from "./processes.js";

let installed: Installed;

beforeAll(() => {
  installed = installProduct();
});

afterAll(() => installed.remove());

/** Nothing here should take long; a test that waits for more has failed. */
const patienceMs = 20_000;

const header = `
import { createRuntime, defineHostFunction } from "./flowcell.mjs";
const anything = { "~standard": { version: 1, vendor: "tests", validate: (value) => ({ value }) } };
let tellCalled;
const called = new Promise((resolve) => { tellCalled = resolve; });
const never = defineHostFunction({ name: "never", doc: "Never answers.", effect: "read", grant: null, input: anything,
  handler: () => { console.log("called"); tellCalled(); return new Promise(() => {}); } });
const runtime = createRuntime({ hostFunctions: [never], spares: 1, workersMax: 3, limits: { cpuMs: 60_000, wallMs: 600_000, outputBytes: 16 * 1024 * 1024 } });
const run = (body) => runtime.run({ label: "s.js", source: "export default async (input, host) => {" + body + "\\n}" });
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
`;

async function until<T>(what: string, ask: () => T | null | undefined | false): Promise<T> {
  for (const end = Date.now() + patienceMs; Date.now() < end; await delay(5)) {
    const answer = ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
  }
  throw new Error(`waited in vain: ${what}`);
}

/** A parent process with what it has printed. */
class Parent {
  readonly child: ChildProcess;
  readonly pid: number;
  output = "";

  constructor(user: TestUser, script: string) {
    this.child = installed.start(header + script, user.spawnOptions);
    this.pid = this.child.pid ?? 0;
    const listen = (text: string): void => {
      this.output += text;
    };
    this.child.stdout?.setEncoding("utf8").on("data", listen);
    this.child.stderr?.setEncoding("utf8").on("data", listen);
  }

  said(word: string): Promise<true> {
    return until(`the parent says ${word}; it said: ${this.output}`, () => {
      if (this.child.exitCode !== null && !this.output.includes(word)) throw new Error(this.output);
      return this.output.includes(word);
    });
  }

  /** Its workers, at least `least` of them. */
  workers(least: number): Promise<readonly Seen[]> {
    return until(`${least} workers`, () => {
      const workers = childrenOf(this.pid).filter(({ name }) => name === "worker");
      return workers.length >= least && workers;
    });
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill(signal);
    await once(this.child, "exit");
  }
}

/** All of them are gone a second after the parent is. */
async function goneWithinASecond(workers: readonly Seen[]): Promise<void> {
  expect(workers.length).toBeGreaterThan(0);
  for (const end = Date.now() + 1000; Date.now() < end && workers.some(lives); ) await delay(5);
  const left = workers.filter(lives);
  // A failed test leaves nothing on the machine either.
  for (const { pid } of left) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // gone since it was looked at
    }
  }
  expect(left).toEqual([]);
}

/** What the workers are doing when the end comes, and how the test knows that they do. */
interface Occupation {
  readonly name: string;
  readonly script: string;
  readonly workers: number;
  readonly reached: (parent: Parent, workers: readonly Seen[]) => Promise<unknown>;
}

const worked = (seen: Seen): Seen | false => {
  const now = look(seen.pid);
  return now !== null && now.cpuTicks > seen.cpuTicks + 10 && now;
};

/** The call in which a process waits, where this user may see it; its scheduler state where not. */
function waitsIn(seen: Seen, kernelFunction: RegExp): boolean {
  const state = look(seen.pid)?.state;
  if (state !== "S") return false;
  const file = `/proc/${seen.pid}/wchan`;
  const where = existsSync(file) ? readFileSync(file, "utf8") : "0";
  return where === "0" || where === "" || kernelFunction.test(where);
}

const occupations: readonly Occupation[] = [
  {
    name: "idle and spare",
    script: 'const r = await run("return 1"); console.log("ready", r.ok); setInterval(() => {}, 1000);',
    workers: 2,
    reached: (parent) => parent.said("ready true"),
  },
  {
    name: "spinning",
    script: 'void run("for(;;);"); void run("for(;;){}"); setInterval(() => {}, 1000);',
    workers: 2,
    reached: (_, workers) => until("a worker that spins", () => workers.some(worked)),
  },
  {
    name: "in a native function that never looks up",
    script: 'void run("Array.prototype.indexOf.call({length:2**53-1},1)"); setInterval(() => {}, 1000);',
    workers: 1,
    reached: (_, workers) => until("a worker that spins", () => workers.some(worked)),
  },
  {
    name: "blocked in a host call",
    script: 'void run("await host.never()"); setInterval(() => {}, 1000);',
    workers: 1,
    reached: (parent) => parent.said("called"),
  },
  {
    name: "blocked writing to a parent that does not read",
    script: `runtime.run({ label: "s.js", source: "export default () => { for(;;) console.log('x'.repeat(1000)) }", onLog: () => {
  console.log("blocking");
  for (const cell = new Int32Array(new SharedArrayBuffer(4)); ; ) Atomics.wait(cell, 0, 0);
} });`,
    workers: 1,
    reached: async (parent, workers) => {
      await parent.said("blocking");
      await until("a worker that waits in a write", () => workers.some((one) => waitsIn(one, /pipe_write/)));
    },
  },
];

describe.each(testUsers)("as $name", (user) => {
  describe.each(["SIGKILL", "SIGTERM", "SIGINT", "SIGSEGV"] as const)("a parent ended by %s", (signal) => {
    // The signals that a parent can catch are the same to the workers; one occupation each will do.
    const wanted = signal === "SIGKILL" ? occupations : occupations.slice(0, 2);
    test.each(wanted)("leaves no worker that is $name", async ({ script, workers: least, reached }) => {
      const parent = new Parent(user, script);
      try {
        const early = await parent.workers(least);
        await reached(parent, early);
        const workers = await parent.workers(least);
        await parent.end(signal);
        await goneWithinASecond(workers);
      } finally {
        await parent.end("SIGKILL");
      }
    });
  });

  test("a parent killed while its first worker starts leaves none", async () => {
    for (let round = 0; round < 10; round++) {
      const parent = new Parent(user, 'void run("return 1"); setInterval(() => {}, 1000);');
      let seen: readonly Seen[] = [];
      // Whatever it is called by then: before it is executed it is a copy of its parent.
      await until("a child", () => {
        seen = childrenOf(parent.pid);
        return seen.length > 0;
      });
      await parent.end("SIGKILL");
      await goneWithinASecond(seen);
    }
  });

  test.each([
    [
      "returns from its main module with an idle pool",
      'const r = await run("return 1"); console.log(r.value);',
      0,
    ],
    ["never used its runtime", "", 0],
    [
      "calls process.exit while scripts run",
      'void run("for(;;);"); void run("await host.never()"); await called; await wait(100); process.exit(7);',
      7,
    ],
    [
      "throws while scripts run",
      'void run("for(;;);"); void run("await host.never()"); await called; await wait(100); setTimeout(() => { throw new Error("bug"); }, 1);',
      1,
    ],
  ])("a parent that %s ends by itself and leaves no worker", async (_, script, code) => {
    const parent = new Parent(user, script);
    const workers = new Map<number, Seen>();
    const watch = setInterval(() => {
      for (const seen of childrenOf(parent.pid)) workers.set(seen.pid, seen);
    }, 5);
    try {
      await until(`the end; ${parent.output}`, () => parent.child.exitCode !== null);
      expect(parent.child.exitCode, parent.output).toBe(code);
      if (script !== "") await goneWithinASecond([...workers.values()]);
    } finally {
      clearInterval(watch);
      await parent.end("SIGKILL");
    }
  });

  test("a run that is under way keeps the parent alive until its result is there", async () => {
    const output = await installed.run(
      `${header}const r = await run("await host.sleep(300); return 'late'"); console.log(r.value);`,
      user.spawnOptions,
    );
    expect(output.trim()).toBe("late");
  });

  test("closing leaves no process, timer, descriptor or listener", async () => {
    const output = await installed.run(
      `${header}
import { readdirSync, readlinkSync } from "node:fs";
const open = () => readdirSync("/proc/self/fd").map((fd) => { try { return readlinkSync("/proc/self/fd/" + fd) } catch { return "" } }).filter((to) => to !== "" && !to.startsWith("/proc/")).length;
const count = () => ({ descriptors: open(), resources: process.getActiveResourcesInfo().filter((name) => name !== "PipeWrap" && name !== "TTYWrap").sort(), listeners: process.eventNames().map(String).sort() });
// The first runtime loads the launcher library and opens what stays open for ever.
await run("return 1"); await runtime.close();
const before = count();
for (let round = 0; round < 3; round++) {
  const other = createRuntime({ hostFunctions: [never], spares: 2 });
  const go = (body) => other.run({ label: "s.js", source: "export default async (input, host) => {" + body + "\\n}", limits: { cpuMs: 500, wallMs: 2000 } });
  const open = [go("return 1"), go("for(;;);"), go("await host.never()"), go("throw 1"), go("setTimeout(() => {}, 1e6); await host.never()")];
  await open[0];
  if (round > 0) await Promise.all(open);
  await other.close();
  const ends = await Promise.all(open);
  if (round === 0) console.log(JSON.stringify(ends.map((r) => r.status)));
}
await wait(20);
console.log(JSON.stringify([before, count()]));`,
      user.spawnOptions,
    );
    const lines = output.split("\n").filter((line) => line.startsWith("["));
    const ends: unknown = JSON.parse(lines[0] ?? "");
    expect(ends).toEqual(["completed", "cancelled", "cancelled", expect.any(String), "cancelled"]);
    const [before, after]: unknown[] = JSON.parse(lines[1] ?? "");
    expect(after).toEqual(before);
  });

  test("a closed pool has no child, not even a dead one", async () => {
    const parent = new Parent(
      user,
      'await run("return 1"); void run("for(;;);"); await wait(50); await runtime.close(); console.log("closed"); setInterval(() => {}, 1000);',
    );
    try {
      await parent.said("closed");
      expect(childrenOf(parent.pid)).toEqual([]);
    } finally {
      await parent.end("SIGKILL");
    }
  });

  test("scripts of every kind run, confined, with Welcome accepted and observed", async () => {
    const output = await installed.run(
      `${header}
const out = [];
for (const body of ["return [1, new Map([[1, 2]])]", "throw new TypeError('t')", "for(;;);", "return await host.sleep(1)", "const a=[];for(;;)a.push('x'.repeat(1e5)+a.length)"]) {
  const r = await runtime.run({ label: "s.js", source: "export default async (input, host) => {" + body + "\\n}", limits: { cpuMs: body.startsWith("for") ? 200 : 10_000 } });
  out.push([r.status, r.ok ? "" : r.error.code, r.confinement?.layers.map((one) => one.layer) ?? []]);
}
await runtime.close();
console.log(JSON.stringify(out));`,
      user.spawnOptions,
    );
    const rows: unknown = JSON.parse(output);
    const layers = expect.arrayContaining(["wasm", "seccomp", "no_new_privs", "non_dumpable", "identity"]);
    expect(rows).toEqual([
      ["completed", "", layers],
      ["script_error", "uncaught", layers],
      ["budget_exceeded", "cpu", layers],
      ["completed", "", layers],
      ["budget_exceeded", "memory", layers],
    ]);
  });
});
