// `flowcell exec` as a process: scripts from files and standard input, modules of tools, mistakes.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outcomeTable } from "@flowcell/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bin, flowcell, flowcellJson, root } from "./run-cli.js";

const tools = "examples/codemode/tools.mjs";
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "exec-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function withInput(text: string | Uint8Array, ...args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [bin, "exec", ...args], { cwd: root }, (error, out, err) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, out, err });
    });
    child.stdin?.end(text);
  });
}

describe("scripts", () => {
  test("come from a file or from standard input, with their tools", async () => {
    const fromFile = await flowcell(["exec", "examples/codemode/total.js", "--tools", tools]);
    expect([fromFile.code, fromFile.out]).toEqual([0, "1900\n"]);
    expect(fromFile.err).toContain("sku: 'tea', cents: 900");
    expect(await withInput("return await tools.add(1, 2)", "--tools", tools)).toMatchObject({
      code: 0,
      out: "3\n",
    });
    expect(await withInput("```ts\nconst n: number = 4;\nn\n```", "-")).toMatchObject({
      code: 0,
      out: "4\n",
    });
  });

  test("answer with the one result object", async () => {
    const path = file("fails.js", "console.log('a');\nawait tools.price({ sku: 'x' });");
    const { code, json } = await flowcellJson(["exec", path, "--tools", tools, "--json"]);
    expect(code).toBe(1);
    expect(json).toMatchObject({
      ok: false,
      status: "script_error",
      error: { name: "RangeError", message: "there is no article x", place: { file: "fails.js", line: 2 } },
      logs: [{ level: "log", text: "a" }],
      calls: [{ name: "tools.price", state: "failed" }],
    });
  });

  test("that exceed a limit end with its exit code", async () => {
    const { code, json } = await flowcellJson([
      "exec",
      file("spin.js", "for (;;);"),
      "--limit",
      "cpuMs=50",
      "--json",
    ]);
    expect(code).toBe(4);
    expect(json).toMatchObject({ status: "budget_exceeded", error: { code: "cpu", limit: 50 } });
  });
});

describe("modules of tools", () => {
  test("may be CommonJS, and may export their tools as one object", async () => {
    const common = file("common.cjs", "exports.one = () => 1; exports.more = { two: () => 2 };");
    expect(
      await withInput("[await tools.one(), await more.two()]", "--tools", common, "--json"),
    ).toMatchObject({ code: 0 });
    const whole = file("whole.mjs", "export default { three: () => 3 };");
    expect(await withInput("await tools.three()", "--tools", whole)).toMatchObject({ code: 0, out: "3\n" });
  });

  test("that are wrong are told in one line", async () => {
    const cases: readonly (readonly [path: string, message: RegExp])[] = [
      [join(folder, "missing.mjs"), /--tools .*missing\.mjs: no such file/],
      [file("empty.mjs", ""), /exports nothing; write for example/],
      [file("unnamed.mjs", "export default () => 1;"), /a function without a name/],
      [file("broken.mjs", "export const a = ;"), /cannot be loaded: SyntaxError/],
      [file("throws.mjs", "throw new Error('at the start');"), /cannot be loaded: Error: at the start/],
      [file("number.mjs", "export const n = 1;"), /tool "n" is of type number/],
      [
        file("old.mjs", "export const f = { description: 'd', parameters: {}, execute() {} };"),
        /did you mean inputSchema/,
      ],
      [file("same.mjs", "export default { 'a-b': () => 1, 'a.b': () => 1 };"), /"a-b"/],
    ];
    for (const [path, message] of cases) {
      const ran = await withInput("1", "--tools", path);
      expect([ran.code, ran.out]).toEqual([2, ""]);
      expect(ran.err).toMatch(message);
      expect(ran.err.trim().split("\n")).toHaveLength(1);
    }
  });
});

describe("a module of tools", () => {
  test("that keeps something open keeps no process alive once the result is printed", async () => {
    const open = file("open.mjs", "setInterval(() => undefined, 1000); export const one = () => 1;");
    expect(await withInput("await tools.one()", "--tools", open)).toMatchObject({ code: 0, out: "1\n" });
    expect(await withInput("await tools.two()", "--tools", open)).toMatchObject({ code: 1, out: "" });
    expect(await withInput("1", "--tools", open, "--limit", "x=1")).toMatchObject({ code: 2, out: "" });
    const bad = file("open-bad.mjs", "setInterval(() => undefined, 1000); export const n = 1;");
    expect(await withInput("1", "--tools", bad)).toMatchObject({ code: 2, out: "" });
    // More than a pipe holds.
    const large = await withInput("'x'.repeat(8e5)", "--tools", open);
    expect([large.code, large.out.length]).toEqual([0, 800_001]);
  });

  test("that hangs with something open is ended by SIGINT, with the exit code of a cancelled run", async () => {
    const hangs = file(
      "hangs.mjs",
      "setInterval(() => undefined, 1000); export const wait = () => new Promise(() => console.error('waits'));",
    );
    let sent = false;
    const ran = await flowcell(["exec", file("hangs.js", "await tools.wait()"), "--tools", hangs, "--json"], {
      onErr: (soFar, kill) => {
        if (sent || !soFar.includes("waits")) return;
        sent = true;
        kill("SIGINT");
      },
    });
    expect(JSON.parse(ran.out)).toMatchObject({ ok: false, status: "cancelled" });
    expect([ran.code, ran.signal]).toEqual([outcomeTable.cancelled.exitCode, null]);
  });

  test("prints to standard error, while it is loaded, while it is called and after", async () => {
    const noisy = file(
      "noisy.mjs",
      `import { Readable } from "node:stream";
      import { stdout } from "node:process";
      console.log("at load");
      process.on("exit", () => console.log("at the end"));
      export const say = async () => {
        console.log("in a call");
        console.table([{ a: 1 }]);
        stdout.write("by name");
        const parts = Array.from({ length: 20 }, () => "y".repeat(100000));
        await new Promise((done) => Readable.from(parts).on("end", done).pipe(stdout, { end: false }));
        return 1;
      };`,
    );
    const path = file("noisy.js", "return await tools.say()");
    const { code, json, err } = await flowcellJson(["exec", path, "--tools", noisy, "--json"]);
    expect([code, json.value]).toEqual([0, 1]);
    for (const text of ["at load", "in a call", "│ a │", "by name", "at the end"])
      expect(err).toContain(text);
    expect(err.match(/y{100000}/g)?.length ?? 0).toBeGreaterThan(0);
    expect((await flowcell(["exec", path, "--tools", noisy])).out).toBe("1\n");
  });
});

describe("calls that need approval", () => {
  const paying = `export const pay = {
    description: "Pays.",
    inputSchema: { type: "object" },
    needsApproval: true,
    execute: ({ cents }) => "paid " + cents,
  };
  export const add = (a, b) => a + b;`;

  test("without a terminal say how they can be approved, and are when they were approved beforehand", async () => {
    const pay = file("pay.mjs", paying);
    const code = "return [await tools.pay({ cents: 5 }), await tools.pay({ cents: 6 })]";
    const alone = await withInput(code, "--tools", pay);
    expect([alone.code, alone.out]).toEqual([8, ""]);
    expect(alone.err).toContain(
      "run it at a terminal to be asked, or approve beforehand with --approve tools.pay",
    );
    expect(alone.err).not.toContain("resume");
    const approved = await withInput(code, "--tools", pay, "--approve", "tools.pay", "--json");
    expect(JSON.parse(approved.out)).toMatchObject({ ok: true, value: ["paid 5", "paid 6"] });
  });

  test("are not approved by a name of nothing that asks", async () => {
    const pay = file("pay.mjs", paying);
    for (const [name, message] of [
      ["pay", /did you mean tools\.pay\?/],
      ["tools.pya", /did you mean tools\.pay\?/],
      ["tools.add", /no such tool needs approval; those that do: tools\.pay/],
    ] as const) {
      const ran = await withInput("1", "--tools", pay, "--approve", name);
      expect([ran.code, ran.out]).toEqual([2, ""]);
      expect(ran.err).toMatch(message);
    }
    expect((await withInput("1", "--approve", "tools.pay")).err).toMatch(/those that do: none/);
  });
});

describe("mistakes", () => {
  test("of options and files are exit code 2 with one line and, with --json, one object", async () => {
    expect((await withInput("1", "--tool", tools)).err).toMatch(
      /unknown option '--tool'; did you mean --tools\?/,
    );
    expect((await withInput("1", "--limit", "cpums=1")).err).toMatch(/did you mean cpuMs/);
    const missing = await flowcellJson(["exec", join(folder, "missing.js"), "--json"]);
    expect(missing.code).toBe(2);
    expect(missing.json).toMatchObject({ ok: false, status: "invalid_input" });
    expect(await withInput(new Uint8Array([0xff, 0xfe]), "-")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/UTF-8/),
    });
  });

  test("in the script point into it", async () => {
    const ran = await withInput("let a = 1;\nlet b = ;");
    expect(ran.code).toBe(1);
    expect(ran.err).toContain("script.js:2:9");
    expect((await withInput("ls -la /tmp")).err).toMatch(/not JavaScript/);
  });
});
