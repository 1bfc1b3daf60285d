// What a launched process is, how its end is told, and what becomes of it when its parent dies.
// The parents that Node never is (closed standard descriptors, no close_range, …) are in
// worker-native/src/launch/launch_test.c, which is run here too.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import koffi from "koffi";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hostFacts } from "../../packages/native/src/host-facts.js";
import {
  closeFd,
  drainFd,
  type LaunchedWorker,
  type LaunchLimits,
  launchWorker,
  type WorkerExit,
} from "../../packages/native/src/launch.js";
import { LaunchError } from "../../packages/native/src/launch-error.js";
import { canDropIdentity, type Installation, install, ORDINARY_USER } from "./installation.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const fixture = `${root}worker-native/build/test/launch-fixture`;
const limits: LaunchLimits = { dataBytes: 1 << 30, cpuSeconds: 600, stackBytes: 8 << 20 };
/** No test waits longer for something that should be immediate. */
const DEADLINE_MS = 20_000;

interface Report {
  readonly descriptors: readonly { fd: number; pipe: boolean; access: number; nonBlocking: boolean }[];
  readonly pid: number;
  readonly [name: string]: unknown;
}

function build(...words: string[]): void {
  execFileSync(process.execPath, [`${root}scripts/build-native.mjs`, ...words], { stdio: "pipe" });
}

async function death(worker: LaunchedWorker): Promise<WorkerExit> {
  for (const end = Date.now() + DEADLINE_MS; Date.now() < end; ) {
    const exit = worker.reap();
    if (exit !== null) return exit;
    await delay(2);
  }
  throw new Error(`process ${worker.pid} did not end`);
}

function closeEnds(worker: LaunchedWorker): void {
  for (const fd of [worker.stdin, worker.stdout, worker.stderr]) closeFd(fd);
}

function launchFixture(...args: string[]): LaunchedWorker {
  return launchWorker({ path: fixture, args, limits });
}

async function finish(...args: string[]): Promise<WorkerExit> {
  const worker = launchFixture(...args);
  const exit = await death(worker);
  closeEnds(worker);
  return exit;
}

async function report(wanted: LaunchLimits = limits): Promise<Report> {
  const worker = launchWorker({ path: fixture, args: ["report"], limits: wanted });
  const output = new Socket({ fd: worker.stdout, readable: true, writable: false });
  let text = "";
  for await (const chunk of output.setEncoding("utf8")) text += String(chunk);
  expect(await death(worker)).toMatchObject({ code: 0 });
  closeFd(worker.stdin);
  closeFd(worker.stderr);
  return JSON.parse(text) as Report; // printed by our own fixture
}

function openDescriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

/** Pids of dead children of this process that nobody has collected. */
function zombies(): string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return state === "Z" && Number(parent) === process.pid;
    } catch {
      return false;
    }
  });
}

beforeAll(() => {
  build("--target", "launcher", "--target", "launch-test");
});

describe("a launched process", () => {
  it("has exactly three descriptors, all pipes with the right direction, blocking", async () => {
    const dup = koffi.load("libc.so.6").func("int dup(int)");
    // A descriptor without close-on-exec, as native add-ons make them.
    const leaked = Array.from({ length: 50 }, () => Number(dup(0)));
    expect(Math.min(...leaked)).toBeGreaterThan(2);
    const { descriptors } = await report();
    expect(descriptors).toEqual([
      { fd: 0, pipe: true, access: 0, nonBlocking: false },
      { fd: 1, pipe: true, access: 1, nonBlocking: false },
      { fd: 2, pipe: true, access: 1, nonBlocking: false },
    ]);
    for (const fd of leaked) closeSync(fd);
  });

  it("has an empty environment, the root directory and only the arguments it was given", async () => {
    expect(await report()).toMatchObject({ environment: 0, directory: "/", arguments: 2, last: "report" });
  });

  it("leads a session and a process group of its own", async () => {
    const facts = await report();
    expect(facts).toMatchObject({ session: facts.pid, group: facts.pid, parent: process.pid });
  });

  it("has default signals, an empty mask, and SIGKILL as its parent-death signal", async () => {
    // An ignored signal survives exec, unlike a handler.
    const ignore = 1;
    koffi.load("libc.so.6").func("intptr_t signal(int, intptr_t)")(constants.signals.SIGWINCH, ignore);
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
    expect((BigInt(`0x${ignored}`) >> BigInt(constants.signals.SIGWINCH - 1)) & 1n).toBe(1n);
    const none = "0000000000000000";
    expect(await report()).toMatchObject({
      SigIgn: none,
      SigBlk: none,
      SigCgt: none,
      SigPnd: none,
      parentDeathSignal: 9,
    });
  });

  it("has the limits asked for, soft and hard, and no core files", async () => {
    expect(await report({ dataBytes: 123 << 20, cpuSeconds: 17, stackBytes: 2 << 20 })).toMatchObject({
      core: ["0", "0"],
      data: [String(123 << 20), String(123 << 20)],
      cpu: ["17", "17"],
      stack: [String(2 << 20), String(2 << 20)],
    });
  });

  it("says which limits were set", async () => {
    const worker = launchFixture("exit", "0");
    expect(worker.limits).toEqual(limits);
    await death(worker);
    closeEnds(worker);
  });

  it("is killed by its CPU limit", async () => {
    const worker = launchWorker({ path: fixture, args: ["spin"], limits: { ...limits, cpuSeconds: 1 } });
    expect(await death(worker)).toMatchObject({ code: null, signal: "SIGKILL" });
    closeEnds(worker);
  });

  it("echoes what is written to it, through sockets on the descriptors", async () => {
    const worker = launchFixture("echo");
    const input = new Socket({ fd: worker.stdin, readable: false, writable: true });
    const output = new Socket({ fd: worker.stdout, readable: true, writable: false });
    const sent = Buffer.alloc(3 << 20, "flowcell");
    input.end(sent);
    const parts: Buffer[] = [];
    for await (const part of output) parts.push(part as Buffer); // no encoding is set
    expect(Buffer.concat(parts).equals(sent)).toBe(true);
    expect(await death(worker)).toMatchObject({ code: 0, signal: null });
    closeFd(worker.stderr);
  });
});

describe("the end of a process", () => {
  it("tells the exit code", async () => {
    expect(await finish("exit", "7")).toMatchObject({ code: 7, signal: null });
  });

  it("tells the signal by name", async () => {
    expect(await finish("signal", "31")).toMatchObject({ code: null, signal: "SIGSYS" });
    expect(await finish("signal", "40")).toMatchObject({ code: null, signal: "SIG40" });
  });

  it("tells the CPU time, which the clock showed while it lived", async () => {
    const worker = launchFixture("burn", "150");
    const before = worker.cpuUs();
    const exit = await death(worker);
    expect(before).toBeGreaterThan(0);
    expect(exit.cpuUs).toBeGreaterThanOrEqual(150_000);
    expect(exit.cpuUs).toBeLessThan(1_000_000);
    expect(worker.cpuUs()).toBe(exit.cpuUs);
    closeEnds(worker);
  });

  it("measures a spinning process as running and an idle one as not", async () => {
    const spinning = launchFixture("spin");
    const idle = launchFixture("idle");
    for (let i = 0; i < 2000 && (spinning.cpuUs() ?? 0) <= 60_000; i++) await delay(10);
    expect(spinning.cpuUs()).toBeGreaterThan(60_000);
    expect(idle.cpuUs()).toBeLessThan(30_000);
    for (const worker of [spinning, idle]) {
      expect(worker.kill()).toBe(true);
      await death(worker);
      closeEnds(worker);
    }
  });

  it("leaves what it wrote to stderr to be read", async () => {
    const worker = launchFixture("complain", "no room");
    expect(await death(worker)).toMatchObject({ code: 3 });
    expect(drainFd(worker.stderr, 3).toString()).toBe("no ");
    expect(drainFd(worker.stderr, 4096).toString()).toBe("room");
    expect(drainFd(worker.stderr, 4096)).toHaveLength(0);
    closeEnds(worker);
  });

  it("is not awaited: draining and reaping a living process return at once", async () => {
    const worker = launchFixture("idle");
    expect(worker.reap()).toBeNull();
    expect(drainFd(worker.stderr, 4096)).toHaveLength(0);
    worker.kill();
    await death(worker);
    closeEnds(worker);
  });

  it("comes with the end of its input, if it waits for that", async () => {
    const worker = launchFixture("idle");
    closeFd(worker.stdin);
    expect(await death(worker)).toMatchObject({ code: 0 });
    closeFd(worker.stdout);
    closeFd(worker.stderr);
  });

  it("makes it unreachable: a collected process is never signalled or measured again", async () => {
    const worker = launchFixture("idle");
    expect(worker.kill()).toBe(true);
    const exit = await death(worker);
    expect(worker.reap()).toBe(exit);
    expect(worker.kill()).toBe(false);
    expect(worker.cpuUs()).toBe(exit.cpuUs);
    closeEnds(worker);
  });

  it("is unknown, not invented, when other code of this process collected it", async () => {
    const waitpid = koffi.load("libc.so.6").func("int waitpid(int, void *, int)");
    const worker = launchFixture("exit", "0");
    while (Number(waitpid(worker.pid, null, 1)) === 0) await delay(2);
    expect(worker.kill()).toBe(false);
    expect(worker.cpuUs()).toBeNull();
    expect(worker.reap()).toEqual({ code: null, signal: null, cpuUs: null });
    closeEnds(worker);
  });

  it("is not disturbed by Node's own children", async () => {
    const worker = launchFixture("exit", "5");
    const child = spawn("/bin/sh", ["-c", "exit 6"]);
    const [code] = await once(child, "exit");
    expect(code).toBe(6);
    expect(await death(worker)).toMatchObject({ code: 5 });
    closeEnds(worker);
  });
});

describe("a launch that fails", () => {
  function failure(path: string, args: string[] = []): LaunchError {
    try {
      launchWorker({ path, args, limits });
    } catch (error) {
      if (error instanceof LaunchError) return error;
      throw error;
    }
    throw new Error(`${path} was launched`);
  }

  it("names the step, the error and a remedy, and leaves no descriptor and no process", () => {
    const before = openDescriptors();
    expect(failure("/nonexistent/worker")).toMatchObject({ step: "open", errnoName: "ENOENT" });
    expect(failure("/etc/passwd")).toMatchObject({ step: "exec", errnoName: "EACCES", errno: 13 });
    expect(failure("/tmp")).toMatchObject({ step: "binary", errno: 0, errnoName: null });
    expect(failure("bin/worker")).toMatchObject({ step: "arguments" });
    expect(failure(fixture, ["a\0b"])).toMatchObject({ step: "arguments" });
    expect(failure(fixture, Array<string>(9).fill("x"))).toMatchObject({ step: "arguments" });
    expect(failure("/etc/passwd").message).toBe(
      "flowcell: cannot launch /etc/passwd: step exec failed (EACCES). Check that the worker binary is " +
        "executable by this user, built for this processor, and not on a file system mounted noexec.",
    );
    expect(openDescriptors()).toBe(before);
    expect(zombies()).toEqual([]);
  });
});

describe("many launches", () => {
  it("leak no descriptor and leave no zombie over 2,000", async () => {
    await finish("exit", "0");
    const before = openDescriptors();
    for (let round = 0; round < 40; round += 1) {
      const workers = Array.from({ length: 50 }, () => launchFixture("exit", "0"));
      for (const worker of workers) {
        expect(await death(worker)).toMatchObject({ code: 0 });
        closeEnds(worker);
      }
    }
    expect(openDescriptors()).toBe(before);
    expect(zombies()).toEqual([]);
  }, 180_000);

  it("can all be alive at once: 200", async () => {
    const started = process.hrtime.bigint();
    const workers = Array.from({ length: 200 }, () => launchFixture("idle"));
    const us = Number((process.hrtime.bigint() - started) / 1000n);
    console.log(`200 launches in a row: ${(us / 1000).toFixed(1)} ms, ${Math.round(us / 200)} µs each`);
    expect(new Set(workers.map((worker) => worker.pid)).size).toBe(200);
    for (const worker of workers) {
      expect(worker.kill()).toBe(true);
      expect(await death(worker)).toMatchObject({ signal: "SIGKILL" });
      closeEnds(worker);
    }
  });
});

describe("in a process of its own", () => {
  let copy: Installation;

  beforeAll(() => {
    copy = install([fixture]);
  });
  afterAll(() => copy.remove());

  const prologue = (): string => `
    import { launchWorker, hostFacts, LaunchError } from "./native.mjs";
    const limits = ${JSON.stringify(limits)};
    const launch = (...args) => launchWorker({
      path: ${JSON.stringify(copy.programs["launch-fixture"])}, args, limits,
      launcherPath: ${JSON.stringify(copy.launcherPath)} });
  `;

  it.each(["idle", "spin"])("a worker that is %s dies with the process that launched it", async (act) => {
    const parent = copy.start(`${prologue()}
      process.stdout.write(String(launch(${JSON.stringify(act)}).pid));
      setInterval(() => {}, 1000);`);
    const [first] = await once(parent.stdout ?? parent, "data");
    const pid = Number(first);
    expect(existsSync(`/proc/${pid}/stat`)).toBe(true);
    parent.kill("SIGKILL");
    await once(parent, "exit");
    const state = (): string => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
      } catch {
        return "gone";
      }
    };
    for (const end = Date.now() + DEADLINE_MS; Date.now() < end; await delay(5)) {
      if (["gone", "Z", "X"].includes(state())) break;
    }
    expect(["gone", "Z", "X"]).toContain(state());
  });

  it("a launch from a worker thread is refused with a reason", async () => {
    const result = await copy.run(`
      import { Worker, isMainThread, parentPort } from "node:worker_threads";
      ${prologue()}
      if (isMainThread) {
        new Worker(new URL(import.meta.url)).on("message", (text) => console.log(text));
      } else {
        try { launch("idle"); } catch (error) {
          parentPort.postMessage(JSON.stringify({ typed: error instanceof LaunchError, step: error.step, message: error.message }));
        }
      }`);
    expect(result).toMatchObject({ typed: true, step: "thread" });
    expect(result).toMatchObject({ message: expect.stringContaining("Launch from the main thread") });
  });

  it("importing the package loads no native code", async () => {
    const result = await copy.run(`
      import { readFileSync } from "node:fs";
      import * as native from "./native.mjs";
      const loaded = (word) => readFileSync("/proc/self/maps", "utf8").includes(word);
      const before = [loaded("koffi"), loaded("launcher.so")];
      native.hostFacts(${JSON.stringify(copy.launcherPath)});
      console.log(JSON.stringify({ before, after: [loaded("koffi"), loaded("launcher.so")] }));`);
    expect(result).toEqual({ before: [false, false], after: [true, true] });
  });

  it("a missing library is named with what to do", async () => {
    const result = await copy.run(`
      import { hostFacts, NativeMissingError } from "./native.mjs";
      try { hostFacts("/nonexistent/launcher.so"); } catch (error) {
        console.log(JSON.stringify([error instanceof NativeMissingError, error.message])); }`);
    expect(result).toEqual([
      true,
      "flowcell: /nonexistent/launcher.so does not exist. Build the native parts: npm run build",
    ]);
  });

  // Without root this whole file already runs as an ordinary user, so the property is tested either way.
  it("an ordinary user launches, kills and collects, and the worker is that user", async () => {
    const identity = canDropIdentity ? { uid: ORDINARY_USER, gid: ORDINARY_USER } : {};
    const result = await copy.run(
      `${prologue()}
      import { Socket } from "node:net";
import { constants } from "node:os";
      const idle = launch("idle");
      const worker = launch("report");
      let text = "";
      for await (const part of new Socket({ fd: worker.stdout, readable: true, writable: false })) text += part;
      const wait = async (one) => { for (;;) { const exit = one.reap(); if (exit) return exit; await new Promise((wake) => setTimeout(wake, 2)); } };
      const exit = await wait(worker);
      const cpu = idle.cpuUs();
      const killed = idle.kill();
      console.log(JSON.stringify({ report: JSON.parse(text), exit, killed, cpu, end: await wait(idle), self: hostFacts().self }));
      process.exit(0);`,
      identity,
    );
    const uid = canDropIdentity ? ORDINARY_USER : process.geteuid?.();
    expect(result).toMatchObject({
      report: { uid, environment: 0, descriptors: [{ fd: 0 }, { fd: 1 }, { fd: 2 }] },
      exit: { code: 0, signal: null },
      killed: true,
      cpu: expect.any(Number),
      end: { code: null, signal: "SIGKILL" },
      self: { uid },
    });
  });
});

describe("the launcher's unit tests in C", () => {
  it("pass", () => {
    execFileSync(`${root}worker-native/build/test/launch-test`, { stdio: "pipe" });
  });

  it("pass under the address and undefined-behaviour sanitizers", () => {
    build("--sanitize", "--target", "launch-test");
    execFileSync(`${root}worker-native/build/sanitize/test/launch-test`, { stdio: "pipe" });
  });
});

describe("host facts", () => {
  it("agree with what this process can read about itself", () => {
    const facts = hostFacts();
    const status = readFileSync("/proc/self/status", "utf8");
    const field = (name: string): string | undefined =>
      new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(status)?.[1];
    expect(facts.self.capEffective).toBe(field("CapEff"));
    expect(facts.self.seccompMode).toBe(Number(field("Seccomp")));
    expect(facts.self.noNewPrivs).toBe(field("NoNewPrivs") === "1");
    expect(facts.procfs).toBe(true);
    expect(facts.landlockAbi > 0 ? facts.landlockError === null : facts.landlockError !== null).toBe(true);
    const openFiles = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    expect(String(facts.self.hardLimits.openFiles)).toBe(openFiles);
  });
});
