// Files are used while other processes swap what lies under their names, some thousand times a second: not a byte of a secret
// is read, nothing outside is changed. The control uses the same files by checked paths, and is fooled.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { layOut, secretText } from "./attack.js";
import { installProgram } from "./bundle.js";

const isRoot = process.geteuid?.() === 0;
const ordinaryUser = 65534;
/** Every combination that this test can start. */
const users = isRoot ? ["root", "an ordinary user"] : ["an ordinary user"];

let installed: string;
let attacker: string;
let victim: string;

beforeAll(() => {
  installed = mkdtempSync(join(tmpdir(), "flowcell-attack-"));
  chmodSync(installed, 0o755);
  attacker = installProgram(installed, "./attacker.child.ts");
  victim = installProgram(installed, "./victim.child.ts");
});

afterAll(() => rmSync(installed, { recursive: true, force: true }));

interface Ended {
  readonly output: string;
  readonly complaint: string;
  readonly code: number | null;
}

function start(user: string, program: string, ...args: string[]): ChildProcess {
  const identity = isRoot && user !== "root" ? { uid: ordinaryUser, gid: ordinaryUser } : {};
  return spawn(process.execPath, [program, ...args], { ...identity, cwd: "/", stdio: "pipe" });
}

function ended(child: ChildProcess): Promise<Ended> {
  let output = "";
  let complaint = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaint += text;
  });
  return new Promise((resolve) => child.on("close", (code) => resolve({ output, complaint, code })));
}

/** The victim's report, with both attackers at work from before its first operation to after its last. */
async function underAttack(user: string, root: string, way: string, operations: number): Promise<unknown> {
  const attackers = ["swap", "link"].map((kind) => start(user, attacker, root, kind));
  const ends = attackers.map(ended);
  try {
    await Promise.all(
      attackers.map((child) => new Promise((resolve) => child.stdout?.once("data", resolve))),
    );
    const { output, complaint, code } = await ended(start(user, victim, root, way, String(operations)));
    expect(code, complaint).toBe(0);
    for (const child of attackers) child.stdin?.end();
    for (const end of ends) {
      const { output: rounds, complaint: trouble } = await end;
      expect(Number(rounds), trouble).toBeGreaterThan(20);
    }
    return JSON.parse(output);
  } finally {
    for (const child of attackers) child.kill("SIGKILL");
  }
}

describe.each(users)("under attack as %s", (user) => {
  let root: string;

  beforeAll(() => {
    root = realpathSync(mkdtempSync(join(tmpdir(), "flowcell-ground-")));
    layOut(root);
    if (isRoot && user !== "root") execFileSync("chown", ["-R", `${ordinaryUser}:${ordinaryUser}`, root]);
  });

  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test("the functions read no secret and change nothing outside of their grant", {
    timeout: 300_000,
  }, async () => {
    const report = await underAttack(user, root, "functions", 4900);
    expect(report).toMatchObject({ leaks: 0, descriptorsLeft: 0 });
    expect(readFileSync(join(root, "outside/f"), "utf8") === secretText).toBe(true);
    expect(readFileSync(join(root, "data/private/f"), "utf8") === secretText).toBe(true);
    expect(readdirSync(join(root, "outside"))).toEqual(["f"]);
    expect(readdirSync(join(root, "data/private"))).toEqual(["f"]);
    expect(lstatSync(join(root, "spare/fifo")).isFIFO()).toBe(true);
    // Both were met: what may be used was used, what may not was refused.
    for (const name of ["read", "append", "write"]) {
      for (const code of ["ok", "denied"]) expect(report).toHaveProperty(["codes", `${name} ${code}`]);
    }
  });

  test("checked paths are fooled into both", { timeout: 300_000 }, async () => {
    const report = await underAttack(user, root, "paths", 240_000);
    expect(report).toMatchObject({ codes: { "outside changed": 1 } });
    expect(report).toHaveProperty("leaks", expect.any(Number));
    expect(report).not.toMatchObject({ leaks: 0 });
  });
});
