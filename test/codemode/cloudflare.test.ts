// The executor against the contract of @cloudflare/codemode, call by call, in real workers.
import { isDeepStrictEqual } from "node:util";
import type * as reference from "@cloudflare/codemode";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ConnectorBinding,
  type Executor,
  FlowcellExecutor,
  type ProviderFunctions,
  type ResolvedProvider,
  reportOf,
} from "../../packages/codemode/src/adapters/cloudflare.js";

let executor: FlowcellExecutor;
beforeAll(() => {
  executor = new FlowcellExecutor({ isolation: "reset" });
});
afterAll(() => executor.close());

function run(code: string, fns: ProviderFunctions = {}, more: Partial<ResolvedProvider> = {}) {
  return executor.execute(code, [{ name: "codemode", fns, ...more }]);
}

const echo = async (...args: unknown[]): Promise<unknown> => args;

test("has the package's own shapes", () => {
  const asReference: reference.Executor = executor;
  const asOurs: Executor = asReference;
  expect(asOurs).toBe(executor);
});

describe("results", () => {
  test("a success has result and logs, and nothing else", async () => {
    const result = await run("async () => ({ a: [1, 'b', null] })");
    expect(isDeepStrictEqual(result, { result: { a: [1, "b", null] }, logs: [] })).toBe(true);
    expect(Reflect.ownKeys(result)).toEqual(["result", "logs"]);
    expect(reportOf(result)).toMatchObject({ ok: true, status: "completed", usage: { hostCalls: 0 } });
    expect(reportOf(result)?.confinement).not.toBeNull();
  });

  test("a failure keeps the key result, has the error's message and the logs before it", async () => {
    const result = await run("async () => { console.log('before'); throw new TypeError('no good'); }");
    expect(isDeepStrictEqual(result, { result: undefined, error: "no good", logs: ["before"] })).toBe(true);
    expect(Reflect.ownKeys(result)).toEqual(["result", "error", "logs"]);
    expect(reportOf(result)).toMatchObject({
      ok: false,
      error: { name: "TypeError", place: { file: "script.js", line: 1 } },
    });
  });

  test.each([
    ["throw 'a text'", "a text"],
    ["throw 42", "42"],
    ["throw null", "null"],
    ["throw undefined", "undefined"],
    ["throw { toString: () => 'an object' }", "an object"],
    ["throw new RangeError('')", "RangeError"],
    ["throw ''", "the script failed with an empty text"],
    ["throw { toString() { throw 1; } }", "the script failed with a value that has no text"],
    ["await Promise.reject('rejected')", "rejected"],
  ])("%s is an error", async (statement, error) => {
    const result = await run(`async () => { ${statement}; }`);
    expect(result).toEqual({ result: undefined, error, logs: [] });
  });

  test("undefined, dates, maps and bytes come back as they are", async () => {
    expect(await run("async () => undefined")).toEqual({ result: undefined, logs: [] });
    const { result } = await run(
      "async () => [new Date(0), new Map([[1, 2]]), new Uint8Array([1, 2]), 10n, { u: undefined }]",
    );
    expect(result).toEqual([new Date(0), new Map([[1, 2]]), new Uint8Array([1, 2]), 10n, { u: undefined }]);
  });

  test("a result that cannot leave the worker is an error that says where it is", async () => {
    const { result, error } = await run("async () => ({ deep: [() => 1] })");
    expect(result).toBeUndefined();
    expect(error).toContain(".deep[0]");
  });
});

describe("console", () => {
  test("lines are texts with the level of all but log", async () => {
    const { logs } = await run(`async () => {
      console.log("a", 1, true, null); console.warn("w"); console.error("e"); console.info("i"); console.debug("d");
    }`);
    expect(logs).toEqual(["a 1 true null", "[warn] w", "[error] e", "[info] i", "[debug] d"]);
  });

  test("an object is shown, not [object Object]", async () => {
    expect((await run("async () => { console.log({ a: 1 }); }")).logs).toEqual(["{ a: 1 }"]);
  });
});

describe("provider functions", () => {
  test("are called with every argument", async () => {
    const { result } = await run("async () => await codemode.echo(1, 'two', [3], { four: 4 })", { echo });
    expect(result).toEqual([1, "two", [3], { four: 4 }]);
    expect((await run("async () => await codemode.echo()", { echo })).result).toEqual([]);
  });

  test("values cross as JSON, bytes as bytes", async () => {
    const seen: unknown[] = [];
    const { result } = await run(
      `async () => {
        const bytes = new Uint8Array([9, 8, 7, 6]);
        const back = await codemode.keep(undefined, new Date(0), { gone: undefined, map: new Map() }, bytes.subarray(1, 3),
          bytes.buffer, new Uint16Array([258]));
        return back.map((item) => [Object.prototype.toString.call(item), item]);
      }`,
      {
        keep: async (...args) => {
          seen.push(...args);
          return [
            new Date(1),
            Buffer.from([1, 2]),
            new Uint8Array([3]).buffer,
            new Float32Array(1),
            undefined,
          ];
        },
      },
    );
    const bytes = new Uint8Array([9, 8, 7, 6]);
    expect(seen).toEqual([
      null,
      "1970-01-01T00:00:00.000Z",
      { map: {} },
      bytes.subarray(1, 3),
      bytes.buffer,
      new Uint8Array([2, 1]),
    ]);
    expect(result).toEqual([
      ["[object String]", "1970-01-01T00:00:00.001Z"],
      ["[object Uint8Array]", new Uint8Array([1, 2])],
      ["[object ArrayBuffer]", new Uint8Array([3]).buffer],
      ["[object Uint8Array]", new Uint8Array(4)],
      ["[object Null]", null],
    ]);
  });

  test("what JSON cannot hold fails in the script, both ways", async () => {
    const fns = { echo, big: async () => 10n };
    const { result } = await run(
      `async () => Promise.all([codemode.echo(10n), codemode.big()].map((call) => call.catch((error) => error.name)))`,
      fns,
    );
    expect(result).toEqual(["TypeError", "TypeError"]);
  });

  test("an object that looks like the mark for bytes stays an object", async () => {
    const marked = { __codemode_binary_v1__: "Uint8Array", data: 7 };
    const { result } = await run(`async () => await codemode.echo(${JSON.stringify(marked)})`, { echo });
    expect(result).toEqual([marked]);
  });

  test("an error reaches the script with its message, whatever was thrown", async () => {
    const fns = {
      error: async () => {
        throw new Error("the tool says no");
      },
      text: () => Promise.reject("just a text"),
    };
    const { result } = await run(
      `async () => Promise.all([codemode.error(), codemode.text()].map((call) =>
        call.catch((error) => [error instanceof Error, error.message])))`,
      fns,
    );
    expect(result).toEqual([
      [true, "the tool says no"],
      [true, "just a text"],
    ]);
    expect(await run("async () => await codemode.error()", fns)).toEqual({
      result: undefined,
      error: "the tool says no",
      logs: [],
    });
  });

  test("an unknown name fails with the package's text and is never looked up on a prototype", async () => {
    const inherited = Object.assign(Object.create({ hidden: echo }), { echo }) as ProviderFunctions; // its own keys are
    const { result } = await run(
      `async () => {
        const told = [];
        for (const name of ["nope", "constructor", "hasOwnProperty", "__proto__", "hidden"])
          try { await codemode[name]({}); told.push(name); } catch (error) { told.push(error.message); }
        return [...told, typeof codemode.then, codemode[Symbol.iterator], "echo" in codemode, Object.keys(codemode)];
      }`,
      inherited,
    );
    expect(result).toEqual([
      'Tool "nope" not found',
      'Tool "constructor" not found',
      'Tool "hasOwnProperty" not found',
      'Tool "__proto__" not found',
      'Tool "hidden" not found',
      "undefined",
      undefined,
      true,
      ["echo"],
    ]);
  });

  test("have their names made identifiers as the package makes them", async () => {
    // biome-ignore lint/suspicious/noThenProperty: a tool may be called so, and must not make a promise of the namespace
    const fns = { "a-b.c d": echo, "9x": echo, delete: echo, "ü!": echo, constructor: echo, then: echo };
    const { result } = await run(
      `async () => [await codemode.a_b_c_d(1), await codemode._9x(2), await codemode.delete_(3), await codemode._(4),
        await codemode.constructor(5), await codemode["then"](6)]`,
      fns,
    );
    expect(result).toEqual([[1], [2], [3], [4], [5], [6]]);
  });

  test("500 at once work", async () => {
    const { result } = await run(
      "async () => (await Promise.all(Array.from({ length: 500 }, (_, n) => codemode.echo(n)))).flat().length",
      { echo },
    );
    expect(result).toBe(500);
  });

  test("a namespace may have the name of a global", async () => {
    const providers = ["JSON", "tools", "fetch", "log", "Object"].map((name) => ({ name, fns: { echo } }));
    const result = await executor.execute(
      "async () => [await JSON.echo(1), await tools.echo(2), await fetch.echo(3), await log.echo(4), await Object.echo({})]",
      providers,
    );
    expect(result).toEqual({ result: [[1], [2], [3], [4], [{}]], logs: [] });
  });

  test("a bare record is the provider codemode", async () => {
    const result = await executor.execute("async () => await codemode.echo(1)", { echo });
    expect(result).toEqual({ result: [1], logs: [] });
  });

  test("a call that nobody waits for is made, and the result stands", async () => {
    let started: (value: unknown) => void = () => {};
    const made = new Promise((resolve) => {
      started = resolve;
    });
    let release: (value: unknown) => void = () => {};
    const held = new Promise((resolve) => {
      release = resolve;
    });
    const result = await run("async () => { codemode.slow('x').catch(() => {}); return 1; }", {
      slow: async (argument) => {
        started(argument);
        await held;
      },
    });
    expect(result).toEqual({ result: 1, logs: [] });
    expect(await made).toBe("x");
    release(undefined);
  });
});

describe("preludes", () => {
  test("run before the script, see the namespaces, and win over functions", async () => {
    const prelude = `const factor = 10; // a comment to the end of the line
      codemode.twice = async (f) => (await f()) * 2 * factor;
      codemode.echo = async () => "the prelude's";`;
    const { result } = await run(
      `async () => [await codemode.twice(async () => (await codemode.raw(4))[0]), await codemode.echo(), factor]`,
      { echo, raw: echo },
      { prelude },
    );
    expect(result).toEqual([80, "the prelude's", 10]);
  });

  test("lines of an error stay those of the script", async () => {
    const result = await run("async () => {\n  const a = 1;\n  a.b.c();\n}", {}, { prelude: "\n\n\n" });
    expect(reportOf(result)).toMatchObject({ ok: false, error: { place: { line: 3 } } });
  });

  test("one that would close the function around it is refused", async () => {
    const result = await run("async () => 1", {}, { prelude: "}; evil(); {" });
    expect(result).toEqual({
      result: undefined,
      error: 'Prelude of provider "codemode" is not valid JavaScript',
    });
  });
});

describe("connectors", () => {
  test("get the name and the first argument only, as it is", async () => {
    const calls: unknown[] = [];
    const connector: ConnectorBinding = {
      name: "github",
      binding: {
        callTool: async (method, args) => {
          calls.push([method, args]);
          return { method, at: new Date(0) };
        },
      },
    };
    const result = await executor.execute(
      "async () => [await github.list({ since: new Date(0) }, 'dropped'), await github['any-name']()]",
      [],
      { connectors: [connector] },
    );
    expect(calls).toEqual([
      ["list", { since: new Date(0) }],
      ["any-name", undefined],
    ]);
    expect(result.result).toEqual([
      { method: "list", at: new Date(0) },
      { method: "any-name", at: new Date(0) },
    ]);
  });

  test("control values are errors in the script", async () => {
    const answers: unknown[] = [
      { __codemode_control__: "pause" },
      { __codemode_control__: "error", message: "refused" },
      null,
    ];
    const connectors = [{ name: "db", binding: { callTool: async () => answers.shift() } }];
    const { result } = await executor.execute(
      `async () => {
        const told = [];
        for (let n = 0; n < 3; n++) told.push(await db.call({}).catch((error) => error.message));
        return told;
      }`,
      [{ name: "codemode", fns: {} }],
      { connectors },
    );
    expect(result).toEqual(["__CODEMODE_PAUSE__", "refused", null]);
  });
});

describe("names", () => {
  const of = (...names: string[]): ResolvedProvider[] => names.map((name) => ({ name, fns: {} }));
  const connector = (name: string): ConnectorBinding => ({ name, binding: { callTool: async () => 1 } });

  test.each([
    [of("Promise"), [], 'Provider name "Promise" is reserved'],
    [of("__dispatchers"), [], 'Provider name "__dispatchers" is reserved'],
    [of("console"), [], 'Provider name "console" is reserved'],
    [of("class"), [], 'Provider name "class" is reserved'],
    [of("my-tools"), [], 'Provider name "my-tools" is not a valid JavaScript identifier'],
    [of("x){}//"), [], 'Provider name "x){}//" is not a valid JavaScript identifier'],
    [of("a", "a"), [], 'Duplicate provider name "a"'],
    [of(), [connector("Error")], 'Connector name "Error" is reserved'],
    [of(), [connector("1x")], 'Connector name "1x" is not a valid JavaScript identifier'],
    [of("a"), [connector("a")], 'Duplicate name "a" (connector clashes with provider)'],
  ])("%j with %j is refused in the package's words", async (providers, connectors, error) => {
    const result = await executor.execute("async () => 1", providers, { connectors });
    expect(result).toEqual({ result: undefined, error });
    expect(reportOf(result)).toBeUndefined();
  });

  test("two functions of one name are refused in the package's words", async () => {
    expect(await run("async () => 1", { "a-b": echo, "a.b": echo })).toEqual({
      result: undefined,
      error: 'Tool names "a-b" and "a.b" both sanitize to "a_b" in provider "codemode"',
    });
  });
});

describe("code", () => {
  test.each([
    ["return 1", 1],
    ["1 + 1", 2],
    ["const x = 1; x + 1", 2],
    ["async () => { return 3 }", 3],
    ["() => 4", 4],
    ["(async () => 5)", 5],
    ["async function main() { return 6 }", 6],
    ["export default async () => 7", 7],
    ["export default function () { return 8 }", 8],
    ["```js\nasync () => 9\n```", 9],
    ["```typescript\nconst n: number = 10;\nreturn n;\n```", 10],
    ["enum E { A = 11 }\nreturn E.A as number", 11],
    ["", undefined],
    ["  \n", undefined],
  ])("%j runs", async (code, result) => {
    expect(await run(code)).toEqual({ result, logs: [] });
  });

  test("a syntax error is told with its line and runs nothing", async () => {
    let calls = 0;
    const result = await run("await codemode.count();\nreturn )", { count: async () => ++calls });
    expect(result.error).toContain("script.js:2:8");
    expect(result).toMatchObject({ result: undefined, logs: [] });
    expect(calls).toBe(0);
  });

  test("cannot break out of what is around it", async () => {
    const result = await run("}; globalThis.out = 1; {");
    expect(result.error).toBeDefined();
    expect((await run("return typeof globalThis.out")).result).toBe("undefined");
  });

  test("has no network, no modules and no process", async () => {
    for (const [code, error] of [
      ["await fetch('http://127.0.0.1/')", /^fetch is not available: there is no network here; call a tool/],
      ["require('fs')", /^require is not available: there is no module here; call a tool/],
      ["process.exit(1)", /^process\.exit is not available here/],
      ["await import('fs')", /cannot import: a script has no modules/],
    ] as const)
      expect((await run(`async () => { ${code}; return "reached"; }`)).error).toMatch(error);
  });
});

describe("limits and lives", () => {
  test("wall time that runs out is told in the package's words, with the logs", async () => {
    await using slow = new FlowcellExecutor({ limits: { wallMs: 300 } });
    const result = await slow.execute(
      "async () => { console.log('x'); await new Promise(() => setInterval(() => {}, 9)); }",
      [],
    );
    expect(result).toEqual({ result: undefined, error: "Execution timed out", logs: ["x"] });
    const waiting = await slow.execute("async () => await codemode.never()", [
      { name: "codemode", fns: { never: () => new Promise(() => {}) } },
    ]);
    expect(waiting).toEqual({ result: undefined, error: "Execution timed out", logs: [] });
  });

  test("CPU time, memory and calls have limits of their own", async () => {
    await using small = new FlowcellExecutor({
      limits: { cpuMs: 100, heapBytes: 16 * 1024 * 1024, hostCalls: 2 },
    });
    // Filling the memory must not run into the time.
    await using roomy = new FlowcellExecutor({ limits: { cpuMs: 20_000, heapBytes: 16 * 1024 * 1024 } });
    const codes = [
      "async () => { for (;;); }",
      "async () => { const all = []; for (;;) all.push(new Uint8Array(1e6)); }",
      "async () => { for (;;) await codemode.echo(); }",
    ];
    const seen = [];
    for (const code of codes) {
      const result = await (code.includes("Uint8Array") ? roomy : small).execute(code, [
        { name: "codemode", fns: { echo } },
      ]);
      const report = reportOf(result);
      expect(result.error).toBeTruthy();
      seen.push(report?.ok === false ? report.error.code : "ok");
    }
    expect(seen).toEqual(["cpu", "memory", "host_calls"]);
  });

  test("scripts see nothing of each other, single use or reset", async () => {
    await using single = new FlowcellExecutor();
    for (const one of [executor, single]) {
      await one.execute("async () => { globalThis.left = 1; Array.prototype.left = 1; }", []);
      const { result } = await one.execute("async () => [typeof left, 'left' in []]", []);
      expect(result).toEqual(["undefined", false]);
    }
  });

  test("every execution is reported", async () => {
    const reports: unknown[] = [];
    await using told = new FlowcellExecutor({ onReport: (report) => reports.push(report) });
    const result = await told.execute("async () => await codemode.echo(1)", [
      { name: "codemode", fns: { echo } },
    ]);
    expect(reports).toEqual([reportOf(result)]);
    expect(reports[0]).toMatchObject({ calls: [{ name: "codemode.echo", state: "done" }] });
  });

  test("a closed executor answers with an error", async () => {
    const closed = new FlowcellExecutor();
    await closed.close();
    await closed.close();
    expect((await closed.execute("async () => 1", [])).error).toContain("closed");
  });

  test("nonsense in place of providers is an error, never a throw", async () => {
    const nonsense: unknown[] = [
      null,
      [null],
      [{ name: "a" }],
      [
        {
          name: "a",
          fns: {
            get x() {
              throw new Error("getter");
            },
          },
        },
      ],
    ];
    for (const providers of nonsense) {
      // What a program without types may pass.
      const result = await executor.execute("async () => 1", providers as ResolvedProvider[]);
      expect(result.error).toBeTruthy();
    }
  });

  test.each([
    [{ timeout: 1000 }, "did you mean limits.wallMs?"],
    [{ loader: {} }, "needs none"],
    [{ globalOutbound: null }, "scripts have no network"],
    [{ tools: {} }, "the tools come with each execute()"],
    [{ onReport: 1 }, "must be a function"],
    [{ limits: { timeout: 1 } }, "did you mean wallMs"],
  ])("the option %j is refused with what to write instead", (options, text) => {
    expect(() => new FlowcellExecutor(options as object)).toThrow(text);
  });
});
