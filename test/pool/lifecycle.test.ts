// What a pool leaves behind: nothing, however its process ends; and what keeps a process alive: an answer that is due.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Pool } from "../../packages/pool/src/index.js";
import { Liars, request, resultValue } from "./liars.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Inside the clone, so that packages and native products are found from it. */
const bundle = `${root}worker-native/build/test/pool-lifecycle-${process.pid}.mjs`;
const packages = readdirSync(`${root}packages`);

beforeAll(async () => {
  await build({
    entryPoints: [`${root}test/pool/lifecycle.child.ts`],
    outfile: bundle,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    external: ["koffi"],
    alias: Object.fromEntries(
      packages.map((name) => [`@flowcell/${name}`, `${root}packages/${name}/src/index.ts`]),
    ),
    // The child finds its sources by its own address, which the bundle moves.
    define: { "import.meta.url": JSON.stringify(new URL("./lifecycle.child.ts", import.meta.url).href) },
  });
});
afterAll(() => rmSync(bundle, { force: true }));

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** Starts the child; the first line is the workers' pids. */
async function start(
  how: string,
): Promise<{ child: ChildProcess; pids: number[]; lines: string[]; ended: Promise<unknown> }> {
  const child = spawn(process.execPath, [bundle, how], { stdio: ["ignore", "pipe", "ignore"] });
  // "exit" may come before the last of the output has been read.
  const ended = once(child, "close");
  const lines: string[] = [];
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (part: string) => {
    text += part;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n")) {
      lines.push(text.slice(0, end));
      text = text.slice(end + 1);
    }
  });
  for (let i = 0; i < 1000 && lines.length === 0; i++) await delay(10);
  const pids = (lines[0] ?? "").split(" ").map(Number);
  expect(pids.length).toBe(3);
  expect(pids.every((pid) => pid > 1)).toBe(true);
  return { child, pids, lines, ended };
}

async function expectGone(pids: readonly number[]): Promise<void> {
  const end = Date.now() + 5000;
  while (pids.some(isAlive) && Date.now() < end) await delay(10);
  expect(pids.filter(isAlive)).toEqual([]);
}

describe("the process", () => {
  it("ends by itself while a pool is idle, and its workers with it", async () => {
    const { pids, ended } = await start("idle");
    expect(await ended).toEqual([0, null]);
    await expectGone(pids);
  });

  it("stays until an answer that is due has come", async () => {
    const { pids, ended, lines } = await start("waits");
    expect(await ended).toEqual([0, null]);
    expect(lines[1]).toBe("completed");
    await expectGone(pids);
  });

  it("takes its workers along when it calls exit, and when it dies of an exception", async () => {
    for (const [how, code] of [
      ["exit", 0],
      ["throw", 1],
    ] as const) {
      const { pids, ended } = await start(how);
      expect(await ended).toEqual([code, null]);
      await expectGone(pids);
    }
  });

  it("takes its workers along when it is killed, idle or spinning", async () => {
    for (const how of ["waits", "spins"]) {
      const { child, pids, lines, ended } = await start(how);
      if (how === "spins") for (let i = 0; i < 500 && lines.length < 2; i++) await delay(10);
      expect(pids.every(isAlive)).toBe(true);
      child.kill("SIGKILL");
      await ended;
      await expectGone(pids);
    }
  });

  it("has no timer, no pipe and no process left after close", async () => {
    const { pids, ended, lines } = await start("close");
    expect(await ended).toEqual([0, null]);
    expect(lines[1]).toBe("");
    await expectGone(pids);
  });
});

describe("close", () => {
  it("frees every descriptor, is quick, and may be repeated and used with `await using`", async () => {
    const liars = new Liars();
    const descriptors = (): number => readdirSync("/proc/self/fd").length;
    const use = async (): Promise<void> => {
      const pool = new Pool(liars.backend("honest"), { spares: 3, workersMax: 6 });
      const runs = Array.from({ length: 10 }, (_, n) =>
        pool.activate(request("return 1", { flow: `f${n % 4}` })),
      );
      for (const run of runs) expect(resultValue(await run)).toBe(1);
      void pool.activate(request("spin"));
      const first = pool.close();
      expect(pool.close()).toBe(first);
      await pool[Symbol.asyncDispose]();
      expect(pool.health().workers.total).toBe(0);
    };
    await use();
    const before = descriptors();
    for (let i = 0; i < 5; i++) await use();
    expect(descriptors()).toBeLessThanOrEqual(before);
    liars.remove();
  });
});

describe("a long life", () => {
  it("of 3,000 activations grows neither memory nor descriptors nor processes", async () => {
    const liars = new Liars();
    const pool = new Pool(liars.backend("honest"), { spares: 1, workersMax: 3 });
    const rounds = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const result = await pool.activate(request("calls 2 echo\nlog x\nreturn 1", { flow: `f${i % 2}` }));
        expect(result.status).toBe("completed");
      }
    };
    await rounds(1500);
    const before = { rss: process.memoryUsage().rss, descriptors: readdirSync("/proc/self/fd").length };
    await rounds(1500);
    expect(process.memoryUsage().rss - before.rss).toBeLessThan(30 << 20);
    expect(readdirSync("/proc/self/fd").length).toBeLessThanOrEqual(before.descriptors + 3);
    expect(pool.health().workers.total).toBeLessThanOrEqual(3);
    await pool.close();
    liars.remove();
  });
});
