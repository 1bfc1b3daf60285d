// Commands over a flow's folder, without a store of the user's: run, check, types and test.
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FlowBench, textAt } from "./flow-bench.js";

let bench: FlowBench;
beforeAll(() => {
  bench = new FlowBench();
});
afterAll(() => bench.remove());

describe("run of a folder", () => {
  test("needs no yes for log, sleep, kv and reading inside the folder, and leaves nothing behind", async () => {
    const script = `export default async (input, host) => {
      await host.sleep(20);
      await host.kv.set("a", input);
      const text = await host.fs.read("/texts/a.txt");
      console.log("read", text.length);
      return { text, kept: await host.kv.get("a") };
    };`;
    const manifest = { grants: { kv: { maxBytes: 100 }, fs: [{ mount: "texts", access: "read" }] } };
    const folder = bench.flow("reader", manifest, script, { "texts/a.txt": "hello" });
    const { code, json, err } = await bench.json("run", folder, "--input", "7");
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(json).toMatchObject({
      ok: true,
      value: { text: "hello", kept: 7 },
      calls: [{ name: "sleep" }, {}, {}, {}],
      logs: [{ text: "read 5" }],
    });
    expect(existsSync(bench.data)).toBe(false);
    const plain = await bench.run("run", folder, "--input", "7");
    expect(plain.out).toBe('{\n  "text": "hello",\n  "kept": 7\n}\n');
    expect(plain.err).toContain("[log] read 5\n");
    expect(plain.err).toMatch(/completed: run_.* confined by wasm/);
  });

  test("prints what is asked for and wants --approve for anything more", async () => {
    const out = join(bench.folder, "out");
    mkdirSync(out);
    const script = 'export default async (_, host) => { await host.fs.write("/out/x.txt", "1"); return 1; };';
    const folder = bench.flow("writer", { grants: { fs: [{ mount: "out", access: "write" }] } }, script);
    const denied = await bench.json("run", folder, "--mount", `out=${out}`);
    expect(denied.code).toBe(3);
    expect(denied.json).toMatchObject({
      ok: false,
      status: "denied",
      error: { wanted: ["write files in /out"] },
    });
    expect(denied.err).toContain("files    write /out");
    expect(existsSync(join(out, "x.txt"))).toBe(false);
    const approved = await bench.json("run", folder, "--mount", `out=${out}`, "--approve");
    expect(approved.code).toBe(0);
    expect(readFileSync(join(out, "x.txt"), "utf8")).toBe("1");
  });

  test("reads outside the folder only where --allow-read says so", async () => {
    const outside = join(bench.folder, "outside");
    bench.write("outside/a.txt", "far");
    const folder = bench.flow(
      "far",
      { grants: { fs: [{ mount: "far", access: "read" }] } },
      'export default (_, host) => host.fs.read("/far/a.txt")',
    );
    const denied = await bench.run("run", folder, "--mount", `far=${outside}`);
    expect(denied.code).toBe(3);
    expect(denied.err).toContain("read files in /far, which is outside the flow's folder");
    const allowed = await bench.run("run", folder, "--mount", `far=${outside}`, "--allow-read", outside);
    expect({ code: allowed.code, out: allowed.out }).toEqual({ code: 0, out: "far\n" });
    const unmapped = await bench.run("run", folder, "--approve");
    expect(unmapped.code).toBe(2);
    expect(unmapped.err).toContain("--mount far=DIR");
  });

  test("reaches a private host only where --allow-net names it", async () => {
    const server = createServer((_, response) => response.end("pong"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const { port } = server.address() as AddressInfo; // a TCP server has a port
    const script =
      "export default async (url) => { try { return await (await fetch(url)).text(); } catch (error) { return error.code; } };";
    const folder = bench.flow("net", { grants: { net: [{ host: "127.0.0.1" }] } }, script);
    const input = ["--input", JSON.stringify(`http://127.0.0.1:${port}/`)];
    try {
      const denied = await bench.run("run", folder, ...input);
      expect(denied.code).toBe(3);
      expect(denied.err).toContain("send requests to 127.0.0.1");
      const closed = await bench.run("run", folder, ...input, "--approve");
      expect(closed.out).toBe("denied\n");
      const open = await bench.run("run", folder, ...input, "--allow-net", `127.0.0.1:${port}`);
      expect({ code: open.code, out: open.out }).toEqual({ code: 0, out: "pong\n" });
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test("a run that waits for somebody ends with 8, since its store goes", async () => {
    const folder = bench.flow(
      "asker",
      {},
      'export default async (_, host) => await host.approval.request("ok?");',
    );
    const { code, json, err } = await bench.json("run", folder);
    expect(code).toBe(8);
    expect(json).toMatchObject({ status: "suspended", pending: [{ name: "approval.request" }] });
    expect(err).toContain("its store is thrown away");
    expect(readdirSync(bench.temporary)).toEqual([]);
  });

  test.each([
    ["--trace is for files", ["--trace"], /--trace looks into the run of a file/],
    ["--limit is for files", ["--limit", "cpuMs=5"], /asks for its budgets in flow\.json/],
  ])("%s", async (_what, args, text) => {
    const { code, err } = await bench.run("run", bench.flow("plain", {}, "export default () => 1"), ...args);
    expect(code).toBe(2);
    expect(err).toMatch(text);
  });

  test("a folder without a manifest says what is missing", async () => {
    mkdirSync(join(bench.folder, "empty"), { recursive: true });
    const { code, err } = await bench.run("run", join(bench.folder, "empty"));
    expect(code).toBe(2);
    expect(err).toMatch(/flow\.json/);
  });

  test("an error of the script has the author's file and line", async () => {
    const folder = bench.flow("broken", {}, "export default () => {\n  throw new TypeError('no');\n};");
    const { code, json, err } = await bench.json("run", folder);
    expect(code).toBe(1);
    expect(json).toMatchObject({
      status: "script_error",
      error: { name: "TypeError", place: { file: "flow.js", line: 2 } },
    });
    expect(err).not.toContain("flowcell: this is a bug");
  });
});

describe("check", () => {
  test("finds a call that is not granted, with its place", async () => {
    const folder = join(bench.folder, "flows/typed");
    bench.write("flows/typed/flow.json", '{"format":1,"id":"typed","grants":{"kv":{"maxBytes":9}}}');
    bench.write(
      "flows/typed/flow.ts",
      "export default async function (input: Input, host: Host) {\n  await host.kv.get('a');\n  return await host.fs.read('/a');\n}\n",
    );
    const { code, json } = await bench.json("check", folder);
    expect(code).toBe(1);
    expect(json).toMatchObject({
      ok: false,
      flow: "typed",
      typesChecked: true,
      errors: [expect.stringMatching(/^flow\.ts:3:\d+: .*'fs'.* \(TS2339\)$/)],
    });
    bench.write(
      "flows/typed/flow.ts",
      "export default async function (input: Input, host: Host) {\n  return await host.kv.get('a');\n}\n",
    );
    expect(await bench.run("check", folder)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^typed: manifest, script and types are right/),
    });
  });

  test("runs nothing of the folder: neither its script nor a compiler that it brings", async () => {
    const folder = bench.flow("trap", {}, "globalThis.ran = true; export default () => 1", {
      "node_modules/typescript/package.json": '{"name":"typescript","version":"9.0.0"}',
      "node_modules/typescript/bin/tsc": `require("fs").writeFileSync(${JSON.stringify(join(bench.folder, "trapped"))}, "")`,
      "tsconfig.json": '{"extends":"/etc/passwd"}',
    });
    expect((await bench.run("check", folder)).code).toBe(0);
    expect(existsSync(join(bench.folder, "trapped"))).toBe(false);
  });

  test("says why a script cannot be bundled, with the line", async () => {
    const folder = bench.flow("imports", {}, 'import fs from "node:fs";\nexport default () => fs;');
    const { code, out } = await bench.run("check", folder);
    expect(code).toBe(1);
    expect(out).toMatch(/flow\.js:1:\d+: flows have no Node modules/);
  });
});

describe("types", () => {
  test("writes what an editor needs, and leaves a configuration alone that is there", async () => {
    const folder = bench.flow("typings", { grants: { kv: { maxBytes: 9 } } }, "export default () => 1", {
      "tsconfig.json": "{}",
    });
    expect((await bench.run("types", folder)).code).toBe(0);
    expect(readFileSync(join(folder, "host.d.ts"), "utf8")).toMatch(/interface Host \{[\s\S]*kv/);
    expect(readFileSync(join(folder, "flowcell-test.d.ts"), "utf8")).toContain(
      'declare module "flowcell:test"',
    );
    expect(readFileSync(join(folder, "tsconfig.json"), "utf8")).toBe("{}");
    const printed = await bench.run("types", folder, "--print");
    expect(printed.out).toBe(readFileSync(join(folder, "host.d.ts"), "utf8"));
  });
});

describe("test", () => {
  const flow =
    "export default async (n, host) => { const a = await host.kv.get('a'); await host.sleep(1000); return (a ?? 0) + n; };";

  test("tells what passed and what failed, with the author's lines, and ends with 1", async () => {
    const folder = bench.flow("tested", { grants: { kv: { maxBytes: 100 } } }, flow, {
      "flow.test.ts": `import { expect, fakeHost, test } from "flowcell:test";
import flow from "./flow.js";

test("adds", async () => {
  const host = fakeHost({ "kv.get": async () => 2 });
  expect(await flow(1, host)).toBe(3);
  expect(host.kv.get).toHaveBeenCalledWith("a");
});
test("is wrong", async () => {
  expect(await flow(1, fakeHost())).toEqual({ sum: 1 });
});
test("waits for ever", () => new Promise(() => {}));
test("is denied", async () => {
  await expect(fakeHost().fs.read("/a")).rejects.toMatchObject({ code: "denied" });
});
test.skip("is skipped", () => { throw new Error("no"); });
`,
    });
    const { code, json } = await bench.json("test", folder);
    expect(code).toBe(1);
    expect(json).toMatchObject({ ok: false, flow: "tested", passed: 2, failed: 2, skipped: 1 });
    const tests = json["files"];
    expect(tests).toMatchObject([
      {
        file: "flow.test.ts",
        tests: [
          { name: "adds", state: "passed" },
          {
            name: "is wrong",
            state: "failed",
            error: {
              message: "expected 1 to equal { sum: 1 }",
              stack: expect.stringContaining("flow.test.ts:10:"),
            },
          },
          {
            name: "waits for ever",
            state: "failed",
            error: { message: expect.stringContaining("never happens") },
          },
          { name: "is denied", state: "passed" },
          { name: "is skipped", state: "skipped" },
        ],
      },
    ]);
    const text = await bench.run("test", folder, "--only", "adds");
    expect({ code: text.code, out: text.out }).toMatchObject({
      code: 0,
      out: expect.stringMatching(/ {2}✓ adds\n[\s\S]*tested: 1 passed, 0 failed, 4 skipped\n$/),
    });
  });

  test("runs inside a worker: a test has no Node, no file and no network", async () => {
    const folder = bench.flow("inside", {}, "export default () => 1", {
      "a.test.js": `import { expect, test } from "flowcell:test";
test("is inside", async () => {
  expect(typeof globalThis.Buffer).toBe("undefined");
  expect(() => process.exit(0)).toThrow();
  await expect(fetch("http://127.0.0.1/")).rejects.toMatchObject({ code: "denied" });
});`,
      "b.test.js": 'import fs from "node:fs"; fs.writeFileSync("x", "");',
      "c.test.js": 'import { test } from "flowcell:test"; throw new Error("at the top");',
    });
    const { code, json } = await bench.json("test", folder);
    expect(code).toBe(1);
    expect(json).toMatchObject({
      passed: 1,
      files: [
        { file: "a.test.js", tests: [{ state: "passed" }] },
        { file: "b.test.js", failure: expect.stringContaining("no Node modules") },
        {
          file: "c.test.js",
          failure: expect.stringMatching(/^script_error \(uncaught\): Error: at the top/),
        },
      ],
    });
  });

  test("a folder without tests says how to write one", async () => {
    const { code, err } = await bench.run("test", bench.flow("untested", {}, "export default () => 1"));
    expect(code).toBe(2);
    expect(err).toContain('import { test, expect } from "flowcell:test"');
  });

  test("replays a recording, and finds what a changed flow does differently", async () => {
    const script =
      "export default async (n, host) => { await host.kv.set('n', n); await new Promise((d) => setTimeout(d, 50)); return [Math.random(), Date.now(), await host.kv.get('n')]; };";
    const manifest = { grants: { kv: { maxBytes: 100 } } };
    const files = {
      "flow.test.js": `import { expect, replay, test } from "flowcell:test";
import recording from "./monday.json";
test("does what it did", async () => {
  const { calls, status, value } = await replay(recording);
  expect([calls, status, value[2]]).toEqual([2, "completed", 5]);
});
test("no recording", async () => {
  await expect(replay({ flowcellJournal: 1 })).rejects.toThrow("this is no recording");
});`,
    };
    const folder = bench.flow("recorded", manifest, script, files);
    await bench.approved(folder);
    const { json } = await bench.json("start", "recorded", "--input", "5");
    const file = join(folder, "monday.json");
    expect((await bench.run("journal", textAt(json, "runId"), "--export", file)).code).toBe(0);
    const same = await bench.json("test", folder);
    expect(same.json).toMatchObject({ ok: true, passed: 2 });
    bench.flow("recorded", manifest, script.replace("set('n', n)", "set('n', n + 1)"), files);
    const changed = await bench.json("test", folder);
    expect(changed.json).toMatchObject({
      ok: false,
      passed: 1,
      failed: 1,
      files: [{ tests: [{ error: { message: expect.stringContaining("the replay differs at") } }, {}] }],
    });
  });
});
