// The command line as a process: streams, exit codes, signals, what it loads, and that it ends.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { flowcell, flowcellJson, node, root } from "./run-cli.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "command-line-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function script(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe("exit codes", () => {
  test.each([
    ["completed", "export default () => 1", [], 0, "completed"],
    ["script_error", "export default () => { throw new Error('x') }", [], 1, "script_error"],
    [
      "invalid_input",
      "export default () => 1",
      ["--input", "1", "--limit", "sourceBytes=16"],
      2,
      "invalid_input",
    ],
    ["budget_exceeded", "export default () => { for (;;); }", ["--limit", "cpuMs=50"], 4, "budget_exceeded"],
  ])("%s", async (name, text, args, code, status) => {
    const ran = await flowcellJson(["run", script(`${name}.js`, text), ...args, "--json"]);
    expect(ran.code).toBe(code);
    expect(ran.json).toMatchObject({ status, ok: code === 0 });
  });
});

describe("streams", () => {
  test("the result alone is on standard output, console lines and the summary on standard error", async () => {
    const path = script(
      "logs.js",
      "export default () => { console.log('hello'); console.error('bad'); return { a: 1 } }",
    );
    const { out, err } = await flowcell(["run", path]);
    expect(out).toBe('{\n  "a": 1\n}\n');
    expect(err).toMatch(/^\[log\] hello\n\[error\] bad\ncompleted in .*confined by wasm, seccomp.*\n$/);
  });

  test("a failure keeps the lines that were logged before it", async () => {
    const path = script(
      "fails.js",
      "export default () => { console.log('a'); console.error({ b: 1 }, [1n]); throw new Error('x') }",
    );
    const { json, err } = await flowcellJson(["run", path, "--json"]);
    expect(json.logs).toMatchObject([
      { level: "log", text: "a" },
      { level: "error", text: expect.stringContaining("b: 1") },
    ]);
    expect(err).toContain("[log] a\n");
  });

  test("what JSON cannot hold is tagged", async () => {
    const path = script(
      "values.js",
      "export default () => [10n, new Date(0), new Uint8Array([1]), undefined, -0]",
    );
    const { json } = await flowcellJson(["run", path, "--json"]);
    expect(json.value).toEqual([
      { $type: "bigint", value: "10" },
      { $type: "Date", value: "1970-01-01T00:00:00.000Z" },
      { $type: "Uint8Array", base64: "AQ==" },
      { $type: "undefined" },
      { $type: "number", value: "-0" },
    ]);
  });

  test("the input may come from standard input, through a pipe too, within the limit", async () => {
    const path = script("length.js", "export default (text) => text.length");
    const { execFileSync } = await import("node:child_process");
    const run = (command: string): string =>
      execFileSync("/bin/sh", ["-c", `${command} 2>&1 || true`], { cwd: root, encoding: "utf8" });
    const flowcellRun = `"${process.execPath}" packages/flowcell/bin/flowcell.mjs run "${path}"`;
    expect(run(`(printf ab; sleep 1; printf cde) | ${flowcellRun} --input @-`)).toMatch(/^5\n/);
    expect(run(`printf abc | ${flowcellRun} --input @/dev/stdin`)).toMatch(/^3\n/);
    expect(run(`yes | ${flowcellRun} --input @-`)).toMatch(
      /^flowcell: --input standard input: has more than \d+ bytes; the limit is \d+/,
    );
    expect(run(`${flowcellRun} --input @- < /dev/null`)).toMatch(/^0\n/);
  });

  test("a reader that goes away is no error", async () => {
    const path = script(
      "big.js",
      "export default () => Array.from({ length: 5000 }, (_, i) => 'line ' + i).join('\\n')",
    );
    const command = `"${process.execPath}" packages/flowcell/bin/flowcell.mjs run "${path}" | head -n 1`;
    const { execFileSync } = await import("node:child_process");
    const out = execFileSync("/bin/sh", ["-c", command], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    expect(out).toBe("line 0\n");
  });

  test("--trace tells plan, script, worker, calls and end with times", async () => {
    const path = script(
      "trace.js",
      "export default async (input, host) => { await host.sleep(1); return input }",
    );
    const { out, err } = await flowcell(["run", path, "--trace", "--input", "5"]);
    expect(out).toBe("5\n");
    for (const part of ["plan", "script", "run", "call", "worker", "end"]) {
      expect(err).toMatch(new RegExp(`^ *[0-9.]+ ms {2}${part} `, "m"));
    }
    expect(err).toMatch(/call {3}0 sleep answered .* after /);
  });
});

describe("signals", () => {
  const waiting = "export default async (input, host) => { console.log('waiting'); await host.sleep(60000) }";

  test.each(["SIGINT", "SIGTERM"] as const)(
    "the first %s cancels the run, which ends in order with exit code 7",
    async (name) => {
      let sent = false;
      const ran = await flowcellJson(["run", script("wait.js", waiting), "--json"], {
        onErr: (soFar, kill) => {
          if (sent || !soFar.includes("waiting")) return;
          sent = true;
          kill(name);
        },
      });
      expect(ran.code).toBe(7);
      expect(ran.json).toMatchObject({
        status: "cancelled",
        calls: [{ name: "sleep", position: 0 }],
        logs: [{ text: "waiting" }],
      });
    },
  );
});

describe("what a run loads", () => {
  /** Every file that Node was asked to open as a module, by a loader hook and the CommonJS loader. */
  async function loaded(path: string): Promise<string[]> {
    const list = join(folder, "loaded.txt");
    writeFileSync(list, "");
    const hook = script(
      "hook.mjs",
      `import { appendFileSync } from "node:fs";
       import module, { register } from "node:module";
       const list = ${JSON.stringify(list)};
       const resolve = module._resolveFilename;
       module._resolveFilename = function (...args) { const file = resolve.apply(this, args); appendFileSync(list, file + "\\n"); return file; };
       const code = \`import { appendFileSync } from "node:fs";
         export async function resolve(specifier, context, next) { const found = await next(specifier, context); appendFileSync(\${JSON.stringify(list)}, found.url + "\\\\n"); return found; }\`;
       register("data:text/javascript," + encodeURIComponent(code));`,
    );
    const { code, err } = await flowcell(["run", path], { nodeArgs: ["--import", hook] });
    expect({ code, err }).toMatchObject({ code: 0 });
    const files = readFileSync(list, "utf8")
      .split("\n")
      .filter((line) => line.includes("/"));
    return [...new Set(files.map((line) => line.replace(/^file:\/\//, "")))].filter(
      (file) => !file.includes(folder) && !file.startsWith("node:"),
    );
  }

  test("for JavaScript: the command, its loader, one bundle and koffi", async () => {
    const files = await loaded(script("plain.js", "export default () => 1"));
    const names = files.map((file) => file.replace(`${root}/`, ""));
    const others = names.filter((name) => !/^node_modules\/(?:koffi|@koromix\/koffi-)/.test(name));
    // The bundle itself is compiled by its loader, not loaded as a module; nothing else is loaded by it either.
    expect(others.sort()).toEqual(["packages/flowcell/bin/flowcell.mjs", "packages/flowcell/dist/cli.mjs"]);
  });

  test("for TypeScript: esbuild as well", async () => {
    const files = await loaded(script("typed.ts", "export default (n: number) => n"));
    expect(files.some((file) => file.includes("node_modules/esbuild/"))).toBe(true);
  });
});

describe("the library", () => {
  test.each([
    ["JavaScript", "export default () => 1"],
    ["TypeScript", "export default (n: number) => 1"],
  ])("does not keep a process alive after running %s", async (_what, source) => {
    const program = script(
      "program.mjs",
      `import { run } from ${JSON.stringify(pathToFileURL(join(root, "packages/flowcell/dist/index.mjs")).href)};
       const result = await run({ source: ${JSON.stringify(source)} });
       console.log(JSON.stringify([result.ok, result.value]));`,
    );
    const { code, out } = await node([program]);
    expect({ code, out }).toEqual({ code: 0, out: "[true,1]\n" });
  });
});

describe("doctor", () => {
  test("prints one JSON object and ends with 0 where a confined worker can be had", async () => {
    const { code, json } = await flowcellJson(["doctor", "--json"]);
    expect(json).toMatchObject({ version: 1, problems: [] });
    expect(code).toBe(0);
  });
});
