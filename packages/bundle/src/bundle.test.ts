// Bundling, the fence and stacks, with the scripts run in the engine itself.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { getQuickJS } from "quickjs-emscripten";
import { afterAll, describe, expect, test } from "vitest";
import {
  assembleResult,
  type BundleFailure,
  bundleFile,
  bundleSource,
  logLine,
  mapStack,
  type Script,
  scriptFileName,
} from "./index.js";

const limits = { sourceBytes: 1024 * 1024 };
const root = mkdtempSync(join(tmpdir(), "bundle-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

type EngineOutcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly name: string; readonly message: string; readonly stack: string };

let folders = 0;

/** Writes files into a fresh folder and returns the path of the first. */
function folder(files: Record<string, string>): string {
  const base = join(root, `case${folders++}`, "flow");
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(base, name)), { recursive: true });
    writeFileSync(join(base, name), text);
  }
  return join(base, Object.keys(files)[0] ?? "");
}

async function scriptOf(files: Record<string, string>): Promise<Script> {
  const result = await bundleFile(folder(files), limits);
  if (!result.ok) throw new Error(`${result.failure.message}\n${result.failure.frame}`);
  return result.script;
}

async function failureOf(files: Record<string, string>): Promise<BundleFailure> {
  const result = await bundleFile(folder(files), limits);
  if (result.ok) throw new Error("expected a failure");
  return result.failure;
}

async function resultOf(files: Record<string, string>, input?: unknown): Promise<unknown> {
  const outcome = await runInEngine((await scriptOf(files)).text, input);
  if (!outcome.ok) throw new Error(`${outcome.name}: ${outcome.message}\n${outcome.stack}`);
  return outcome.value;
}

/** The mapped stack of a script that fails. */
async function stackOf(files: Record<string, string>): Promise<string> {
  const script = await scriptOf(files);
  const outcome = await runInEngine(script.text);
  if (outcome.ok) throw new Error("expected the script to fail");
  return mapStack(outcome.stack, script.map).stack;
}

/**
 * Runs a script in the engine that the worker is made from, as WebAssembly inside this process: evaluates the expression
 * and calls the default export the way the worker does, without any of its comforts.
 */
async function runInEngine(script: string, input: unknown = null): Promise<EngineOutcome> {
  const engine = await getQuickJS();
  const context = engine.newContext();
  try {
    context.setProp(context.global, "input", context.newString(JSON.stringify(input)));
    const loaded = context.evalCode(script, scriptFileName);
    if (loaded.error !== undefined) return failure(context.dump(loaded.error));
    context.setProp(context.global, "start", loaded.value);
    const driver = `globalThis.outcome = undefined;
      const settle = (outcome) => { globalThis.outcome = JSON.stringify(outcome); };
      const fail = (e) => settle({ ok: false, name: String(e.name), message: String(e.message), stack: String(e.stack) });
      try { Promise.resolve(start().default(JSON.parse(input), {})).then((value) => settle({ ok: true, value }), fail); }
      catch (e) { fail(e); }`;
    context.unwrapResult(context.evalCode(driver, "driver.js")).dispose();
    context.runtime.executePendingJobs();
    const outcome: unknown = JSON.parse(context.getString(context.getProp(context.global, "outcome")));
    return outcome as EngineOutcome; // written by the driver above in this shape
  } finally {
    // The test's contexts are few and small; disposing one with live handles would abort the engine.
  }
}

function failure(error: { name: string; message: string; stack: string }): EngineOutcome {
  return { ok: false, name: error.name, message: error.message, stack: error.stack };
}

function children(): { pid: number; command: string }[] {
  const pids = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ").map(Number);
  return pids.map((pid) => ({ pid, command: readFileSync(`/proc/${pid}/cmdline`, "utf8") }));
}

describe("plain JavaScript", () => {
  test.each([
    ["an anonymous function", "export default async function (input, host) { return input + 1 }"],
    ["a named function", "export default async function main(input) { return input + 1 }"],
    [
      "a named function used above",
      "const twice = main;\nexport default function main(input) { return input + 1 }",
    ],
    ["an arrow function", "export default (input) => input + 1"],
    ["an arrow function in parentheses", "export default (((input) => input + 1))"],
    [
      "an arrow function followed by a bracket",
      "export default (input) => { return input + 1 }\n;[1].map(String)",
    ],
    ["a local name", "const f = (input) => input + 1;\nexport default f"],
    ["a list", "const f = (input) => input + 1;\nexport { f as default, f as g }"],
    ["a comment between the words", "export /* why */ default /* not */ async (input) => input + 1"],
    [
      "named exports beside it",
      "export const one = 1\nexport function g() {}\nexport default (input) => input + one",
    ],
    ["a hashbang", "#!/usr/bin/env flowcell\nexport default (input) => input + 1"],
    ["a trailing comment", "export default (input) => input + 1 // done"],
  ])("runs with %s as default export", async (_name, source) => {
    expect(await resultOf({ "flow.js": source }, 4)).toBe(5);
  });

  test("is strict code, as modules are", async () => {
    const source = "export default function () { return (function () { return typeof this })() }";
    expect(await resultOf({ "flow.js": source })).toBe("undefined");
    expect(await resultOf({ "flow.ts": source })).toBe("undefined");
  });

  test("keeps an anonymous default function's name", async () => {
    expect(
      await resultOf({
        "flow.js": "const o = [1];\nexport default function () { return start().default.name }",
      }),
    ).toBe("default");
  });

  test("reaches the engine without esbuild", async () => {
    // esbuild prints code anew; odd spacing survives only when it was not involved.
    const script = await scriptOf({ "flow.js": "export default   async  (input)=>   input" });
    expect(script.text).toContain("async  (input)=>   input");
  });

  test("may use CommonJS exports", async () => {
    expect(await resultOf({ "flow.js": "module.exports = (input) => input + 1" }, 1)).toBe(2);
  });

  test("may use syntax newer than the engine", async () => {
    const source = `export default () => {
      const seen = [];
      { using a = { [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() { seen.push("disposed") } }; seen.push("used") }
      return seen;
    }`;
    expect(await resultOf({ "flow.js": source })).toEqual(["used", "disposed"]);
  });
});

describe("TypeScript and imports", () => {
  test("types disappear and code that looks like types stays", async () => {
    const source = `const s = 'a as b: c<d>'; const o = { as: 1, type: 2, satisfies: 3 };
      export default (input: unknown): unknown => [s, o.as, o.type < 3];`;
    expect(await resultOf({ "flow.ts": source })).toEqual(["a as b: c<d>", 1, true]);
  });

  test("type arguments are types, in a file that JavaScript could read as comparisons", async () => {
    const source = `const g = (x) => x; const T = 1;
      export default () => g<T>(5);`;
    expect(await resultOf({ "flow.ts": source })).toBe(5);
    expect(await resultOf({ "flow.ts": source.replace("g<T>", "g<Array<T>>") })).toBe(5);
    expect(await resultOf({ "flow.js": source })).toBe(false);
  });

  test("JavaScript in a TypeScript file reaches the engine without esbuild", async () => {
    const script = await scriptOf({ "flow.ts": "export default   async  (input)=>   input" });
    expect(script.text).toContain("async  (input)=>   input");
  });

  test("enums, parameter properties and satisfies work", async () => {
    const source = `enum Unit { A = "a", B = "b" }
      class P { constructor(readonly x: number) {} }
      export default ((input: number) => [Unit.B, new P(input).x]) satisfies (input: number) => unknown;`;
    expect(await resultOf({ "flow.ts": source }, 7)).toEqual(["b", 7]);
  });

  test("local files, folders and JSON are imported", async () => {
    const files = {
      "flow.ts": `import { add } from "./lib/add.js"; import { one } from "./lib"; import data from "./data.json";
        export default (input: number) => add(input, one) + data.n;`,
      "lib/add.ts": "export const add = (a: number, b: number): number => a + b;",
      "lib/index.ts": "export const one = 1;",
      "data.json": '{"n": 100}',
    };
    expect(await resultOf(files, 5)).toBe(106);
  });

  test("packages of the script's own node_modules are imported", async () => {
    const files = {
      "flow.js":
        'import { join } from "tiny"; import events from "events"; export default () => join(["a", events]);',
      "node_modules/tiny/package.json": '{"name":"tiny","type":"module","exports":{".":"./main.js"}}',
      "node_modules/tiny/main.js": "export const join = (list) => list.join('-');",
      "node_modules/events/package.json": '{"name":"events","main":"index.js"}',
      "node_modules/events/index.js": "module.exports = 'own';",
    };
    expect(await resultOf(files)).toBe("a-own");
  });

  test("classes that clash across files keep their names", async () => {
    const files = {
      "flow.ts": `import { make } from "./other.js";
        class ParseError extends Error { constructor(m: string) { super(m); this.name = new.target.name } }
        export default () => [new ParseError("x").name, make().name, make().constructor.name];`,
      "other.ts": `class ParseError extends Error { constructor(m: string) { super(m); this.name = new.target.name } }
        export const make = () => new ParseError("y");`,
    };
    expect(await resultOf(files)).toEqual(["ParseError", "ParseError", "ParseError"]);
  });

  test("a dynamic import of a local file works", async () => {
    const files = {
      "flow.js": 'export default async () => (await import("./late.js")).value;',
      "late.js": "export const value = 'late';",
    };
    expect(await resultOf(files)).toBe("late");
  });

  test("lists the files it was made from", async () => {
    const script = await scriptOf({
      "flow.ts": 'import { a } from "./lib/a.js"; export default () => a;',
      "lib/a.ts": "export const a = 1;",
      "lib/unused.ts": "export const b = 1;",
    });
    expect(script.inputs).toEqual(["flow.ts", "lib/a.ts"]);
  });

  test("holds no path of this machine", async () => {
    const script = await scriptOf({
      "flow.ts": 'import { a } from "./lib/a.js"; export default () => a;',
      "lib/a.ts": "export const a = 1;",
    });
    expect(script.text).not.toContain(root);
  });
});

describe("the fence", () => {
  const outside = join(root, "secret.json");
  writeFileSync(outside, '{"secret":"s3cr3t"}');

  test.each([
    ["a parent folder", "../../secret.json", "import_refused"],
    ["an absolute path", outside, "import_refused"],
    ["a file URL", `file://${outside}`, "import_refused"],
    ["a data URL", "data:text/javascript,export default 1", "import_refused"],
    ["an https URL", "https://example.com/x.js", "import_refused"],
    ["/etc/passwd by dots", "../../../../../../../../etc/passwd", "import_refused"],
    ["a text file", "./note.txt", "import_refused"],
    ["a JSX file", "./view.tsx", "import_refused"],
    ["a package of an outer folder", "acorn", "import_not_found"],
    ["a missing file", "./nope.js", "import_not_found"],
    ["a Node module", "node:fs", "node_module"],
    ["a Node module by its short name", "fs/promises", "node_module"],
  ])("refuses an import of %s", async (_name, specifier, code) => {
    const failure = await failureOf({
      "flow.ts": `\nimport x from ${JSON.stringify(specifier)};\nexport default () => x;`,
      "note.txt": "text",
      "view.tsx": "export default 1;",
    });
    expect(failure.code).toBe(code);
    expect(failure.message).toMatch(/^flow\.ts:2:15: /);
    expect(failure.message).not.toContain("s3cr3t");
  });

  test("the same file inside the folder is imported", async () => {
    const files = {
      "flow.ts": 'import x from "./secret.json"; export default () => x.secret;',
      "secret.json": '{"secret":"mine"}',
    };
    expect(await resultOf(files)).toBe("mine");
  });

  test.each(["require", "import"])("refuses %s() of a file outside", async (word) => {
    const failure = await failureOf({ "flow.js": `export default () => ${word}("../../secret.json");` });
    expect(failure.code).toBe("import_refused");
  });

  test("refuses a link inside the folder that leads out of it", async () => {
    const entry = folder({ "flow.ts": 'import x from "./inner.json"; export default () => x;' });
    symlinkSync(outside, join(dirname(entry), "inner.json"));
    const result = await bundleFile(entry, limits);
    expect(result.ok ? "bundled" : result.failure.code).toBe("import_refused");
  });

  test("refuses a linked folder that leads out of it", async () => {
    const entry = folder({ "flow.ts": 'import x from "./inner/secret.json"; export default () => x;' });
    symlinkSync(root, join(dirname(entry), "inner"));
    const result = await bundleFile(entry, limits);
    expect(result.ok ? "bundled" : result.failure.code).toBe("import_refused");
  });

  test("follows a link that stays inside", async () => {
    const entry = folder({
      "flow.js": 'import x from "./b.js"; export default () => x;',
      "a.js": "export default 3;",
    });
    symlinkSync(join(dirname(entry), "a.js"), join(dirname(entry), "b.js"));
    const result = await bundleFile(entry, limits);
    expect(result.ok && (await runInEngine(result.script.text))).toEqual({ ok: true, value: 3 });
  });

  test("reads no tsconfig, of the folder or above it", async () => {
    const files = {
      "flow.ts": 'import x from "@/lib"; export default () => x;',
      "tsconfig.json": '{"extends":"../../secret.json","compilerOptions":{"paths":{"@/lib":["./lib.ts"]}}}',
      "lib.ts": "export default 1;",
    };
    expect((await failureOf(files)).code).toBe("import_not_found");
  });

  test("sets no environment values", async () => {
    const source = "export default () => typeof process === 'undefined' ? 'none' : process.env.NODE_ENV";
    expect(await resultOf({ "flow.ts": source })).toBe("none");
  });

  test("does not follow a source map that an input names", async () => {
    const map = Buffer.from(
      JSON.stringify({ version: 3, sources: ["/etc/passwd"], names: [], mappings: "AAAA" }),
    );
    const stack = await stackOf({
      "flow.ts": `export default () => null.x;\n//# sourceMappingURL=data:application/json;base64,${map.toString("base64")}`,
    });
    expect(stack).toContain("flow.ts:1:");
    expect(stack).not.toContain("passwd");
  });

  test("refuses an import into a script that has no file", async () => {
    const result = await bundleSource('import x from "./x.js"; export default () => x', limits);
    expect(result.ok ? "bundled" : result.failure).toMatchObject({
      code: "import_refused",
      message: expect.stringMatching(/^script\.ts:1:15: /),
    });
  });

  test("names what to use instead of a Node module", async () => {
    const { message } = await failureOf({
      "flow.ts": 'import { readFileSync } from "node:fs";\nexport default () => readFileSync;',
    });
    expect(message).toBe(
      'flow.ts:1:30: flows have no Node modules ("node:fs"). For files use host functions, or pass the content in as input',
    );
  });
});

describe("a name that is put together", () => {
  const tooFar = `${"../".repeat(40)}`;

  test.each([
    ["js", `export default (n) => import("${tooFar}" + n + ".js");`],
    ["js", `export default (n) => import(\`${tooFar}\${n}/x.js\`);`],
    ["js", 'export default (n) => import(/* webpack: "x" */ "./" + n);'],
    ["js", 'export default (n) => import/**/("./" + n, { with: { type: "json" } });'],
    ["js", 'export default (n) => require("./" + n);'],
    ["js", 'export default (n) => (require)("./" + n);'],
    ["js", 'export default (n) => requir\\u0065("./" + n);'],
    ["js", 'export default (n) => import(n ? "./a" + n : "./b.js");'],
    ["js", 'export default (n) => import("." + "/" + n);'],
    ["ts", 'const enum Way { Out = "../" }\nexport default (n: string) => import(Way.Out + n);'],
    ["ts", 'declare const require: any;\nexport default (n: string) => require!("./" + n);'],
    ["ts", 'declare const require: any;\nexport default (n: string) => (require as any)<any>("./" + n);'],
  ])("is refused at its place, and no folder is looked through (.%s: %s)", async (ending, source) => {
    // With an import of its own a script does not take the short way, on which there is no bundler.
    const flow = `import "./b.js";${source}`;
    const { code, message } = await failureOf({ [`flow.${ending}`]: flow, "b.js": "export const b = 1;" });
    expect({ code, message }).toEqual({
      code: "import_refused",
      message: expect.stringMatching(/^flow\.[jt]s:[12]:\d+: import\(\) of a computed name finds nothing/),
    });
  });

  test("is refused in a file that is imported, and in a script without a folder", async () => {
    const files = {
      "flow.js": 'import { get } from "./get.js"; export default get;',
      "get.js": '// first\nexport const get = (n) => import("./" + n);',
    };
    expect((await failureOf(files)).message).toMatch(/^get\.js:2:\d+: import\(\) of a computed name/);
    const alone = await bundleSource(`export default (n) => import("${tooFar}" + n);`, limits);
    expect(alone).toMatchObject({ ok: false, failure: { code: "import_refused" } });
  });

  test.each([
    'export default async (n) => (await import(n > 0 ? "./a.js" : "./b.js")).v;',
    "export default async () => (await import(`./a.js`)).v;",
    'export default async () => (await import("./" + "a.js")).v;',
    'export default async () => (await import("./a.js")).v; // or require("./" + n)',
    `export default async () => (await import("./a.js")).v + 'require("./" + n)'.length - 17;`,
  ])("is another thing than a name that stands there: %s", async (source) => {
    const files = { "flow.js": source, "a.js": "export const v = 7;", "b.js": "export const v = 7;" };
    expect(await resultOf(files, 1)).toBe(7);
  });
});

describe("refusals", () => {
  test.each(["js", "ts"])(
    "a syntax error in a .%s file shows file, line, column, the line and a caret",
    async (ending) => {
      const failure = await failureOf({
        [`flow.${ending}`]: "export default () => {\n  const a = b foo;\n};",
      });
      expect(failure.message).toBe(`flow.${ending}:2:15: Expected ";" but found "foo"`);
      expect(failure.frame).toBe("    2 |   const a = b foo;\n                      ^");
    },
  );

  test("a column counts characters as editors do", async () => {
    const failure = await failureOf({ "flow.ts": "export default () => { 'é日本𝒳'; let 1 }" });
    expect(failure.place).toEqual({ file: "flow.ts", line: 1, column: 37 });
  });

  test.each([
    ["ls -la /tmp", "a shell command"],
    ["curl https://example.com | sh", "a shell command"],
    ["#!/bin/bash\necho hi", "a script for another interpreter"],
    ["<!DOCTYPE html>\n<html></html>", "a web page or XML"],
    ["def main(x):\n  return x", "Python"],
    ["Please write a script that sums numbers.", "prose"],
    ["SELECT name FROM users", "SQL"],
    ["```js\nexport default () => 1\n```", "Markdown"],
    ["", "an empty file"],
  ])("says that %j does not look like JavaScript", async (text, kind) => {
    for (const ending of ["js", "ts"]) {
      const failure = await failureOf({ [`flow.${ending}`]: text });
      expect(failure.code).toBe("not_javascript");
      expect(failure.message).toContain("does not look like JavaScript or TypeScript");
      expect(failure.message).toContain(kind);
    }
  });

  test.each(["js", "ts"])("a .%s file without default export is told what to write", async (ending) => {
    const failure = await failureOf({ [`flow.${ending}`]: "const a = 1;\nexport const b = a;" });
    expect(failure.code).toBe("no_default_export");
    expect(failure.message).toContain("export default async function (input, host)");
  });

  test.each(["js", "ts"])(
    "await at the top level of a .%s file is refused with its place",
    async (ending) => {
      const failure = await failureOf({
        [`flow.${ending}`]: "const a = 1;\nawait a;\nexport default () => a;",
      });
      expect(failure).toMatchObject({ code: "top_level_await", place: { line: 2, column: 1 } });
    },
  );

  test.each([
    ["a missing file", "nope.js", "not_found"],
    ["a missing name without an ending", "nope", "not_found"],
    ["a folder", ".", "unsupported_file"],
    ["another ending", "data.csv", "unsupported_file"],
  ])("refuses %s", async (_name, name, code) => {
    const base = dirname(folder({ "data.csv": "a,b" }));
    const result = await bundleFile(join(base, name), limits);
    expect(result.ok ? "bundled" : result.failure.code).toBe(code);
  });

  test("refuses a file larger than the limit without reading it, and takes one that fits", async () => {
    const entry = folder({ "flow.js": `export default () => 1;${" ".repeat(2000)}` });
    const refused = await bundleFile(entry, { sourceBytes: 2000 });
    expect(refused.ok ? "bundled" : refused.failure.code).toBe("source_too_large");
    expect((await bundleFile(entry, { sourceBytes: 4000 })).ok).toBe(true);
  });

  test("refuses imports that make the script larger than the limit", async () => {
    const entry = folder({
      "flow.js": 'import { text } from "./big.js"; export default () => text;',
      "big.js": `export const text = "${"x".repeat(1500)}";`,
    });
    const refused = await bundleFile(entry, { sourceBytes: 1600 });
    expect(refused.ok ? "bundled" : refused.failure.code).toBe("source_too_large");
  });

  test("refuses a binary file and one that is not UTF-8", async () => {
    expect((await failureOf({ "flow.js": "export default 1;\0" })).code).toBe("not_javascript");
    const entry = folder({ "flow.js": "" });
    writeFileSync(entry, Buffer.from([0x2f, 0x2f, 0xff, 0xfe]));
    const result = await bundleFile(entry, limits);
    expect(result.ok ? "bundled" : result.failure.code).toBe("not_javascript");
  });

  test("refuses a deep source before a parser sees it", async () => {
    const source = `export default () => ${"(".repeat(50_000)}1${")".repeat(50_000)}`;
    expect((await failureOf({ "flow.js": source })).code).toBe("nesting_too_deep");
    expect((await failureOf({ "flow.ts": source })).code).toBe("nesting_too_deep");
  });

  test("decides in linear time about text that is made to look like types or imports", async () => {
    for (const part of ["<", "<a ", "import ", "<>", ">", "await "]) {
      const text = `/* ${part.repeat(150_000)} */ export default () => 1`;
      expect((await bundleSource(text, { sourceBytes: 4 * 1024 * 1024 })).ok).toBe(true);
    }
  });

  test("runs a source that is nested below the limit", async () => {
    const source = `export default () => ${"(".repeat(200)}1${")".repeat(200)}`;
    expect(await resultOf({ "flow.js": source })).toBe(1);
  });
});

describe("the bundler's process", () => {
  test("a build that outlives its deadline is refused and the next one works", async () => {
    const entry = folder({ "flow.ts": "export default (x: number) => x;" });
    const late = await bundleFile(entry, { ...limits, deadlineMs: 0 });
    expect(late.ok ? "bundled" : late.failure.code).toBe("bundler_deadline");
    expect((await bundleFile(entry, limits)).ok).toBe(true);
  });

  test("is started again after it was killed", async () => {
    const entry = folder({ "flow.ts": "export default (x: number) => x + 1;" });
    expect((await bundleFile(entry, limits)).ok).toBe(true);
    const services = children().filter((child) => child.command.includes("--service="));
    expect(services).toHaveLength(1);
    for (const { pid } of services) process.kill(pid, "SIGKILL");
    expect((await bundleFile(folder({ "flow.ts": "export default (x: number) => x + 2;" }), limits)).ok).toBe(
      true,
    );
  });

  test("builds at the same time do not disturb each other", async () => {
    const scripts = await Promise.all(
      [1, 2, 3, 4].map((n) => scriptOf({ "flow.ts": `const n: number = ${n};\nexport default () => n;` })),
    );
    const outcomes = await Promise.all(scripts.map((script) => runInEngine(script.text)));
    expect(outcomes.map((outcome) => outcome.ok && outcome.value)).toEqual([1, 2, 3, 4]);
  });
});

describe("stacks", () => {
  test.each([
    ["js", "const a = 1;\n\n\nnull.foo;\nexport default () => a;", "flow.js:4:5"],
    [
      "ts",
      "type T={\n a:string;\n b:number;\n};\nconst x:T={a:'',b:1};\nnull.foo;\nexport default () => x;",
      "flow.ts:6:5",
    ],
  ])("an error at the top level of a .%s file has its own line", async (ending, source, place) => {
    expect(await stackOf({ [`flow.${ending}`]: source })).toBe(`    at ${place}`);
  });

  test.each(["js", "ts"])("frames of a .%s file have their names and positions", async (ending) => {
    const source =
      "function f() { nope() }\nconst g = () => [1].map(f);\nexport default async () => {\n  await null;\n  g();\n}";
    expect(await stackOf({ [`flow.${ending}`]: source })).toBe(
      [
        `    at f (flow.${ending}:1:16)`,
        "    at map (native)",
        `    at g (flow.${ending}:2:24)`,
        `    at default (flow.${ending}:5:4)`,
      ].join("\n"),
    );
  });

  test("positions behind characters outside the basic plane are right", async () => {
    const source = "export default () => { const s = 'éé日本𝒳𝒳'; return null.foo; }";
    expect(await stackOf({ "flow.js": source })).toContain("flow.js:1:57");
    expect(await stackOf({ "flow.ts": source })).toContain("flow.ts:1:57");
  });

  test("frames in an imported file name that file", async () => {
    const stack = await stackOf({
      "flow.ts": 'import { boom } from "./lib/deep.js";\nexport default () => boom(1);',
      "lib/deep.ts":
        "interface A { a: number }\n\nexport function boom(n: number): A {\n  throw new Error(String(n));\n}",
    });
    expect(stack.split("\n")).toEqual([
      expect.stringMatching(/^ {4}at boom \(lib\/deep\.ts:4:\d+\)$/),
      expect.stringMatching(/^ {4}at default \(flow\.ts:2:\d+\)$/),
    ]);
  });

  test("a relative entry is named as it was typed", async () => {
    const entry = folder({ "flow.js": "export default () => null.x;" });
    const result = await bundleFile(entry, { ...limits, label: "flows/prices/flow.js" });
    if (!result.ok) throw new Error(result.failure.message);
    const outcome = await runInEngine(result.script.text);
    expect(!outcome.ok && mapStack(outcome.stack, result.script.map).stack).toContain(
      "flows/prices/flow.js:1:",
    );
  });

  test("a frame that a script made up is dropped", async () => {
    const script = await scriptOf({ "flow.js": "export default () => 1;" });
    const forged = [
      "    at x (/etc/passwd:1:1)",
      "    at y (script.js:99999:1)",
      "    at z (prelude.js:1:1)",
      "hello",
    ];
    expect(mapStack(forged.join("\n"), script.map)).toEqual({ stack: "" });
  });

  test("control characters in a function's name do not survive", async () => {
    const script = await scriptOf({ "flow.js": "export default () => 1;" });
    const { stack } = mapStack("    at \u001b[31mred (script.js:1:60)", script.map);
    expect(stack).toContain("flow.js:1:");
    expect(stack).not.toContain("\u001b");
  });

  test("a huge stack text is cut", async () => {
    const script = await scriptOf({ "flow.js": "export default () => 1;" });
    const { stack } = mapStack("    at f (script.js:1:60)\n".repeat(100_000), script.map);
    expect(stack.split("\n")).toHaveLength(50);
  });
});

describe("stacks for people", () => {
  const files = {
    "flow.ts":
      'import { boom } from "./lib.ts";\nexport default (): number => {\n  try {\n    boom();\n  } catch (error) {\n    return error.stack;\n  }\n};\n',
    "lib.ts": "export function boom(): never {\n  // why\n  throw new Error('b');\n}\n",
  };

  test("frames of built-in functions stand between frames of the author, not before them", async () => {
    const { map, text } = await scriptOf(files);
    const at = text.split("\n").findIndex((line) => line.includes("throw new Error")) + 1;
    const stack = `    at construct (native)\n    at boom (script.js:${at}:9)\n    at map (native)\n    at boom (script.js:${at}:9)\n    at call (native)\n`;
    expect(mapStack(stack, map).stack).toMatch(
      /^ {4}at boom \(lib\.ts:3:\d+\)\n {4}at map \(native\)\n {4}at boom \(lib\.ts:3:\d+\)$/,
    );
  });

  test("a console line that is a frame names the author's file, others are as they were", async () => {
    const script = await scriptOf(files);
    const ran = await runInEngine(script.text);
    if (!ran.ok) throw new Error(ran.message);
    const raw = `caught Error: b\n${String(ran.value)}    at inside (prelude.js:1:2)\n    at map (native)\n  at home (script.js) I said`;
    const line = logLine({ seq: 0, level: "log", text: raw, timeMs: 0 }, script.map);
    expect(raw).toContain("script.js:");
    expect(line.text).toMatch(
      /^caught Error: b\n {4}at boom \(lib\.ts:3:\d+\)\n {4}at default \(flow\.ts:4:\d+\)\n(?: {4}at [^\n]*\n)*? {4}at map \(native\)\n {2}at home \(script\.js\) I said$/,
    );
    expect(line.text).not.toContain("prelude.js");
    expect(logLine({ seq: 0, level: "log", text: raw, timeMs: 0 }).text).toBe(raw);
  });
});

describe("what a script that is one bundle has not", () => {
  test("a computed import() is remarked on with its place, and its error says what to do", async () => {
    const script = await scriptOf({
      "flow.js": 'const name = "./lib.js";\nexport default async () => await import(name);\n',
    });
    expect(script.warnings).toEqual([
      expect.stringMatching(
        /^flow\.js:2:\d+: import\(\) of a computed name finds nothing: .*write the name as a text/,
      ),
    ]);
    const activation = {
      status: "script_error",
      error: {
        code: "uncaught",
        name: "ReferenceError",
        message: "could not load module 'lib.js'",
        stack: "",
      },
      logs: [],
      logsTruncated: false,
      warnings: [],
      usage: { cpuMs: 0, wallMs: 0, heapPeakBytes: 0, hostCalls: 0, bytesIn: 0, bytesOut: 0, queuedMs: 0 },
      calls: [],
      started: true,
      confinement: null,
    } as const;
    const result = assembleResult(activation, {
      runId: "r",
      map: script.map,
      warnings: [],
      limits: { resultBytes: 1000, bodyBytes: 1000 },
      effectOf: () => undefined,
    });
    expect(result).toMatchObject({
      error: { name: "ReferenceError", message: expect.stringMatching(/^import\(\) of a computed name/) },
    });
  });

  test("import.meta is remarked on in words about scripts", async () => {
    const { warnings } = await scriptOf({ "flow.js": "export default () => import.meta.url;" });
    expect(warnings).toEqual([
      expect.stringMatching(/^flow\.js:1:\d+: import\.meta is empty: a script is one bundle/),
    ]);
    expect(warnings.join()).not.toContain("iife");
  });
});
