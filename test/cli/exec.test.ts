// `flowcell exec` as a process: scripts from files and standard input, modules of tools, mistakes.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
