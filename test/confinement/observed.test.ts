// A confined process as others see it: what it attests is what the kernel shows, another process of the same user
// cannot look into it, and it does not outlive its parent.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, constants, existsSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { build, product, runOne, Stage, type TestUser, testUsers } from "./harness.js";

let stage: Stage;
let probe: string;
const parents: ChildProcess[] = [];

beforeAll(() => {
  build("probe", "run-piped", "filter-dump");
  stage = new Stage();
  probe = stage.copy(product("bin/probe"), "probe");
});

afterEach(() => {
  for (const parent of parents.splice(0)) parent.kill("SIGKILL");
});

afterAll(() => stage.remove());

/** Waits until `look` gives something; fails after twenty seconds. */
async function eventually<T>(what: string, look: () => T | null): Promise<T> {
  const end = Date.now() + 20_000;
  for (;;) {
    const seen = look();
    if (seen !== null) return seen;
    if (Date.now() > end) throw new Error(`${what}: not within twenty seconds`);
    await sleep(5);
  }
}

function status(pid: number): ReadonlyMap<string, string> | null {
  try {
    const lines = readFileSync(`/proc/${pid}/status`, "utf8").split("\n");
    return new Map(lines.map((line) => [line.split(":")[0] ?? "", line.slice(line.indexOf(":") + 1).trim()]));
  } catch {
    return null;
  }
}

/** A program that stays alive under run-piped; its parent is the ChildProcess. */
async function held(
  user: TestUser,
  program: readonly string[],
): Promise<{ parent: ChildProcess; pid: number }> {
  const parent = spawn(product("test/run-piped"), { stdio: ["pipe", "ignore", "inherit"] });
  parents.push(parent);
  const words = [...(user.option === null ? [] : [user.option]), "--", ...program];
  parent.stdin.write(`${words.join("\t")}\n`);
  const pid = await eventually("the program", () => {
    const children = readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, "utf8").trim();
    return children === "" ? null : Number(children.split(" ")[0]);
  });
  return { parent, pid };
}

async function confined(pid: number): Promise<ReadonlyMap<string, string>> {
  return eventually("confinement", () => {
    const seen = status(pid);
    return seen?.get("Seccomp") === "2" ? seen : null;
  });
}

/** Gone, or dead and not yet collected by whoever inherited it. */
function isDead(pid: number): boolean {
  const seen = status(pid);
  return seen === null || seen.get("State")?.startsWith("Z") === true;
}

/** Opens the write ends of all pipes that a process holds, so that its death does not end anybody's input. */
function holdPipes(owner: ChildProcess): number[] {
  const folder = `/proc/${owner.pid}/fd`;
  const pipes = readdirSync(folder).filter((fd) => readlinkSync(`${folder}/${fd}`).startsWith("pipe:"));
  const held = pipes.map((fd) => openSync(`${folder}/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK));
  expect(held.length).toBeGreaterThan(0);
  return held;
}

/** Reads a file of /proc as user 65534 (or as ourselves when we are no root), which also owns the process looked at. */
function readAs(user: TestUser, file: string): { readonly exit: number; readonly stderr: string } {
  return runOne(product("test/run-piped"), {
    options: [user.isRoot ? "--user=65534" : user.option],
    program: ["/bin/cat", file],
  });
}

const secrets = ["maps", "mem", "environ", "auxv", "syscall", "stack", "io", "fdinfo/0"];

describe.each(testUsers())("as $name", (user) => {
  it("the kernel shows what the process attests", async () => {
    const { pid } = await held(user, [probe, "--facts"]);
    const seen = await confined(pid);
    for (const [key, value] of [
      ["NoNewPrivs", "1"],
      ["Seccomp_filters", "1"],
      ["Threads", "1"],
      ["TracerPid", "0"],
      ["CoreDumping", "0"],
      ["CapInh", "0".repeat(16)],
      ["CapPrm", "0".repeat(16)],
      ["CapEff", "0".repeat(16)],
      ["CapAmb", "0".repeat(16)],
    ] as const) {
      expect(seen.get(key), key).toBe(value);
    }
    expect(seen.get("Uid")?.split("\t")).not.toContain("0");
    if (user.isRoot) expect(seen.get("Groups")).toBe("");
    const limits = readFileSync(`/proc/${pid}/limits`, "utf8");
    expect(limits).toMatch(/^Max open files +3 +3 /m);
    expect(limits).toMatch(/^Max processes +0 +0 /m);
    expect(limits).toMatch(/^Max file size +0 +0 /m);
    expect(limits).toMatch(/^Max core file size +0 +0 /m);
  });

  it("another process of the same user cannot look into it, as it could before", async () => {
    const [open, closed] = await Promise.all([
      held(user, ["/bin/sleep", "30"]),
      held(user, [probe, "--facts"]),
    ]);
    await confined(closed.pid);
    if (!user.isRoot) expect(readAs(user, `/proc/${open.pid}/maps`).exit).toBe(0);
    for (const secret of secrets.filter((name) => existsSync(`/proc/${closed.pid}/${name}`))) {
      const { exit, stderr } = readAs(user, `/proc/${closed.pid}/${secret}`);
      expect(exit, secret).not.toBe(0);
      expect(stderr, secret).toMatch(/Permission denied|Operation not permitted/);
    }
  });

  it("dies with its parent while it is idle, even if its input stays open", async () => {
    const { parent, pid } = await held(user, [probe, "--facts"]);
    await confined(pid);
    const pipes = holdPipes(parent);
    try {
      parent.kill("SIGKILL");
      await eventually("death", () => (isDead(pid) ? true : null));
    } finally {
      for (const pipe of pipes) closeSync(pipe);
    }
  });

  it("dies with its parent while it is spinning", async () => {
    const { parent, pid } = await held(user, [probe, "--spin"]);
    await confined(pid);
    parent.kill("SIGKILL");
    await eventually("death", () => (isDead(pid) ? true : null));
  });
});
