// Scripts that call tools, in real workers: values, errors, results, limits, cancellation, isolation.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExecuteOptions, ExecuteResult } from "../../packages/codemode/src/index.js";
import { type Bench, openBench } from "./tools.js";

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(async () => {
  await bench.codemode.close();
});

const execute = (code: string, options?: ExecuteOptions): Promise<ExecuteResult> =>
  bench.codemode.execute(code, options);

async function valueFrom(code: string, options?: ExecuteOptions): Promise<unknown> {
  const result = await execute(code, options);
  if (!result.ok) throw new Error(`${result.status}: ${result.error.stack ?? result.error.message}`);
  return result.value;
}

async function failureOf(code: string, options?: ExecuteOptions) {
  const result = await execute(code, options);
  if (result.ok) throw new Error(`completed with ${String(result.value)}`);
  return result;
}

describe("calls", () => {
  test("positional tools get every argument, in its place", async () => {
    expect(await valueFrom("return await tools.two(1, { a: 2 }, undefined)")).toBe(3);
    expect(await valueFrom("return await github.list('x', { page: 2 })")).toEqual(["x", 2]);
  });

  test("codemode and tools are the same, and are global", async () => {
    expect(
      await valueFrom("[codemode === tools, globalThis.tools === tools, await codemode.echo(1)]"),
    ).toEqual([true, true, 1]);
  });

  test("a namespace can be reached through tools, and a tool by the name that it had", async () => {
    expect(
      await valueFrom("[tools.github === github, await tools['my-tool.v2'](), await tools.my_tool_v2()]"),
    ).toEqual([true, "sanitised", "sanitised"]);
  });

  test("an asynchronous result is a promise and no empty object", async () => {
    expect(await valueFrom("const x = tools.echo(5); return [typeof x.then, await x]")).toEqual([
      "function",
      5,
    ]);
  });

  test("inputs are checked before a tool is called, and defaults filled in", async () => {
    expect(await valueFrom("await tools.find({ query: 'ab' })")).toEqual({ found: ["ab", "ab", "ab"] });
    for (const [call, message] of [
      ["tools.find({ query: 1 })", /tools\.find: .*query/],
      ["tools.find()", /tools\.find: /],
      ["tools.find({ query: 'ab' }, 2)", /takes one object with all its inputs, not 2 arguments/],
      ["github.issue({ number: 0 })", /github\.issue: .*number/],
      ["github.issue({ number: 1, extra: 1 })", /github\.issue: /],
    ] as const) {
      const caught = await valueFrom(`try { await ${call} } catch (e) { return [e.code, e.message] }`);
      expect(caught).toEqual(["invalid_arguments", expect.stringMatching(message)]);
    }
  });

  test("a result that breaks its schema reaches no script", async () => {
    const caught = await valueFrom(
      "try { await tools.wrongOutput({}) } catch (e) { return [e.code, e.message] }",
    );
    expect(caught).toEqual(["internal", expect.stringMatching(/outputSchema.*n/)]);
  });

  test("a name that is no tool fails by its name, with the likely one", async () => {
    const { error } = await failureOf("return await tools.ecko(1)");
    expect(error.name).toBe("TypeError");
    expect(error.message).toMatch(/tools\.ecko is not a tool here.*Did you mean tools\.echo\?/);
    expect((await failureOf("await github.nope()")).error.message).toMatch(/github\.nope is not a tool here/);
  });

  test("what every object has is never a call", async () => {
    const seen = await valueFrom(`
      const names = ['constructor', 'then', 'toString', 'valueOf', '__proto__', 'hasOwnProperty', 'toJSON'];
      return names.map((name) => typeof tools[name]).concat(typeof github.then, 'then' in tools);`);
    expect(seen).toEqual([...Array(8).fill("undefined"), false]);
    const result = await execute(
      "try { return [await tools.toString(), await tools.constructor('x')] } catch { return 'no' }",
    );
    expect(result).toMatchObject({ ok: true, value: "no", calls: [] });
  });

  test("tools cannot be replaced or removed for what comes after", async () => {
    expect(
      await valueFrom(`
        const tries = [() => { tools.echo = 1 }, () => { delete tools.echo }, () => Object.defineProperty(tools, 'x', { value: 1 })];
        const refused = tries.map((f) => { try { f(); return 'done' } catch (e) { return e.name } });
        return [refused, await tools.echo(2), Object.keys(tools).includes('echo'), 'echo' in tools]`),
    ).toEqual([["TypeError", "TypeError", "TypeError"], 2, true, true]);
  });

  test("each call is told its key, its position and its execution", async () => {
    const result = await execute("return [await tools.key({}), await tools.key({})]");
    if (!result.ok) throw new Error(result.error.message);
    const keys = result.calls.map(({ idempotencyKey }) => idempotencyKey);
    expect(result.value).toEqual(
      keys.map((idempotencyKey, position) => ({ idempotencyKey, position, runId: result.runId })),
    );
    expect(keys[0]).toMatch(/^run_[\w-]{22}\.0$/);
  });

  test("500 calls at once all answer, in order", async () => {
    const code =
      "return (await Promise.all(Array.from({ length: 500 }, (_, i) => tools.echo(i)))).every((v, i) => v === i)";
    const result = await execute(code);
    expect(result).toMatchObject({ ok: true, value: true, usage: { hostCalls: 500 } });
    expect(result.calls).toHaveLength(500);
  });

  test("race and any are won by the first, and the loser disturbs nobody", async () => {
    expect(await valueFrom("return await Promise.race([tools.slow(), tools.echo('fast')])")).toBe("fast");
    expect(await valueFrom("return await Promise.any([tools.boom(), tools.echo('fast')])")).toBe("fast");
    expect(
      await valueFrom(
        "return (await Promise.allSettled([tools.boom(), tools.echo(1)])).map((s) => s.status)",
      ),
    ).toEqual(["rejected", "fulfilled"]);
    const timer =
      "return await Promise.race([tools.echo(1), new Promise((_, j) => setTimeout(() => j(new Error('late')), 50))])";
    expect(await valueFrom(timer)).toBe(1);
  });

  test("a call that nobody waits for is told in a warning, and a late rejection reaches nobody", async () => {
    const result = await execute("tools.late(); return 1");
    expect(result).toMatchObject({ ok: true, value: 1 });
    expect(result.warnings).not.toHaveLength(0);
    expect(result.calls).toMatchObject([{ name: "tools.late", state: "unknown" }]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await valueFrom("1")).toBe(1);
  });
});

describe("values", () => {
  test("everything that can be sent crosses both ways as it is", async () => {
    const code = `
      const cycle = { name: 'c' }; cycle.self = cycle;
      const sent = [undefined, null, NaN, Infinity, -0, 10n ** 30n, new Date(0), new Map([[1, { a: 2 }]]), new Set(['x']), cycle,
        'a\\u0000b\\ud800', new Uint8Array([0, 255, 128]), new Float64Array([1.5])];
      const back = await Promise.all(sent.map((value) => tools.echo(value)));
      return { back, same: back.every((value, i) => Object.is(value, sent[i]) || typeof value === 'object') };`;
    const { back, same } = (await valueFrom(code)) as { back: unknown[]; same: boolean };
    expect(same).toBe(true);
    expect(back.slice(0, 9)).toEqual([
      undefined,
      null,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      -0,
      10n ** 30n,
      new Date(0),
      new Map([[1, { a: 2 }]]),
      new Set(["x"]),
    ]);
    const [cycle, text, bytes, floats] = back.slice(9) as [
      { self: unknown },
      string,
      Uint8Array,
      Float64Array,
    ];
    expect(cycle.self).toBe(cycle);
    expect(text).toBe("a\u0000b\ud800");
    expect([...bytes, ...floats]).toEqual([0, 255, 128, 1.5]);
  });

  test("dunder keys of arguments stay own keys", async () => {
    const code =
      "return Object.keys(await tools.echo({ constructor: 1, prototype: 2, ['__proto__']: 5, hasOwnProperty: 3 }))";
    expect(await valueFrom(code)).toEqual(["constructor", "prototype", "__proto__", "hasOwnProperty"]);
  });

  test("what cannot be sent is refused with its path, on either side", async () => {
    expect((await failureOf("return { a: [1, { f() {} }] }")).error).toMatchObject({
      code: "unsendable",
      message: expect.stringMatching(/a\[1\]\.f/),
    });
    for (const name of ["fn", "cls", "badGetter"]) {
      const caught = await valueFrom(
        `try { await tools.${name}() } catch (e) { return [e.code, e.message] }`,
      );
      expect(caught).toEqual([
        "outcome_unknown",
        expect.stringMatching(new RegExp(`^tools\\.${name}: the result cannot be sent`)),
      ]);
    }
  });

  test("sizes have limits that say so", async () => {
    expect((await failureOf("return 'x'.repeat(5e6)")).error).toMatchObject({
      code: "result_size",
      limit: 1048576,
    });
    expect(await valueFrom("try { await tools.big() } catch (e) { return e.code }")).toBe("result_too_large");
    expect(await valueFrom("try { await tools.echo('x'.repeat(2e6)) } catch (e) { return e.code }")).toBe(
      "too_large",
    );
    expect((await failureOf("throw new Error('x'.repeat(5e6))")).error.message.length).toBeLessThan(20_000);
  });
});

describe("errors", () => {
  test("a tool's own error is caught with its name, code and message, and no host frame", async () => {
    const caught = await valueFrom(
      "try { await tools.boom() } catch (e) { return [e instanceof Error, e.name, e.code, e.message, e.stack] }",
    );
    expect(caught).toEqual([
      true,
      "TypeError",
      "E_BOOM",
      "boom",
      expect.not.stringMatching(/node:|tools\.ts|file:/),
    ]);
    expect(await valueFrom("try { await tools.throwsText() } catch (e) { return e.message }")).toBe(
      "just text",
    );
  });

  test("a tool's error names no path of the host", async () => {
    const caught = await valueFrom("try { await tools.hostPath() } catch (e) { return e.message }");
    expect(caught).toBe("cannot open (path)");
  });

  test("what a script throws is what the result says, with its place", async () => {
    const failed = await failureOf("const a = 1;\n\nthrow new RangeError('no', { cause: new Error('why') })");
    expect(failed).toMatchObject({
      status: "script_error",
      started: true,
      error: {
        code: "uncaught",
        name: "RangeError",
        message: "no",
        place: { file: "script.js", line: 3 },
        cause: { name: "Error", message: "why" },
      },
    });
    expect(failed.error.stack).toMatch(/^RangeError: no\n {4}at .*script\.js:3:\d+/);
    expect((await failureOf("nope()")).error.message).toBe(
      "nope is not defined; the namespaces of tools are tools, github",
    );
    expect((await failureOf("await tools.boom()")).error).toMatchObject({
      name: "TypeError",
      message: "boom",
    });
  });

  test("a thrown value that is no error is a failure too", async () => {
    for (const [code, message] of [
      ["throw 'text'", /text/],
      ["throw null", /null/],
      ["throw { code: 42, message: 'm' }", /m/],
      ["throw new Error('')", /^$/],
      ["return Promise.reject(new Error('no'))", /^no$/],
      ["throw undefined", /undefined/],
    ] as const) {
      const { error, status } = await failureOf(code);
      expect(status).toBe("script_error");
      expect(error.message).toMatch(message);
    }
  });

  test("a syntax error runs nothing and points into the caller's text", async () => {
    const before = bench.witness.calls.length;
    const failed = await failureOf("Text.\n```js\nawait tools.note('ran');\nlet a = ;\n```");
    expect(failed).toMatchObject({
      status: "script_error",
      started: false,
      calls: [],
      error: { code: "syntax", name: "SyntaxError", place: { line: 4, column: 9 } },
    });
    expect(bench.witness.calls).toHaveLength(before);
  });

  test("lines of TypeScript are the caller's", async () => {
    const typed = "type T = {\n a: string;\n b: number;\n};\nconst x: T = { a: '', b: 1 };\nnull.foo;";
    expect((await failureOf(typed)).error.place?.line).toBe(6);
    expect((await failureOf(`Prose.\n\`\`\`ts\n${typed}\n\`\`\``)).error.place?.line).toBe(8);
    expect((await failureOf("const n: number = 1; null.foo")).error.place).toEqual({
      file: "script.js",
      line: 1,
      column: 26,
    });
  });

  test("names that do not exist here say what to use instead", async () => {
    expect((await failureOf("await fetch('https://example.com')")).error.message).toMatch(/fetch/);
    expect((await failureOf("require('fs')")).error.message).toMatch(/require/);
    expect((await failureOf("new Intl.NumberFormat()")).error.message).toMatch(/Intl/);
    expect((await failureOf("process.exit()")).error.message).toMatch(/process/);
  });
});

describe("results", () => {
  test("every result has logs, usage, calls and the live confinement", async () => {
    const done = await execute("console.log('a', { b: 1 }); console.error([1n]); return await tools.echo(1)");
    const thrown = await execute(
      "console.log('a', { b: 1 }); console.error([1n]); await tools.echo(1); throw new Error('x')",
    );
    for (const result of [done, thrown]) {
      expect(result.logs.map(({ level, text }) => [level, text])).toEqual([
        ["log", "a { b: 1 }"],
        ["error", "[ 1n ]"],
      ]);
      expect(result.calls).toMatchObject([{ position: 0, name: "tools.echo", state: "done" }]);
      expect(result.usage).toMatchObject({
        hostCalls: 1,
        cpuMs: expect.any(Number),
        queuedMs: expect.any(Number),
      });
      expect(result.usage.heapPeakBytes).toBeGreaterThan(0);
      expect(result.confinement?.layers.length).toBeGreaterThan(2);
      expect(result.runId).toMatch(/^run_[\w-]{22}$/);
      expect(result.pending).toEqual([]);
    }
  });

  test("console lines come as they are written", async () => {
    const lines: string[] = [];
    await execute("console.log('one'); await tools.echo(1); console.warn('two')", {
      onLog: ({ level, text }) => lines.push(`${level} ${text}`),
    });
    expect(lines).toEqual(["log one", "warn two"]);
  });

  test("calls say whether they ran", async () => {
    const failed = await failureOf("tools.slowWrite({}); tools.slowRead({}); await tools.boom()", {});
    const states = Object.fromEntries(failed.calls.map(({ name, state }) => [name, state]));
    expect(states).toEqual({
      "tools.slowWrite": "unknown",
      "tools.slowRead": "cancelled",
      "tools.boom": "failed",
    });
    expect(new Set(failed.calls.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(3);
  });
});

describe("limits", () => {
  test("each that is hit is named, with what was allowed and used", async () => {
    const cases: readonly (readonly [code: string, limits: Record<string, number>, reason: string])[] = [
      ["while (true) {}", { cpuMs: 100 }, "cpu"],
      ["await tools.never({})", { wallMs: 150 }, "wall"],
      ["for (;;) await tools.slow()", { wallMs: 300 }, "wall"],
      ["const a = []; for (;;) a.push('x'.repeat(100000) + a.length)", { heapBytes: 8388608 }, "memory"],
      ["for (let i = 0; i < 50; i++) await tools.echo(i)", { hostCalls: 10 }, "host_calls"],
      ["return 'x'.repeat(5000)", { resultBytes: 4096 }, "result_size"],
    ];
    for (const [code, limits, reason] of cases) {
      const failed = await failureOf(code, { limits });
      expect([failed.status, failed.error.code]).toEqual(["budget_exceeded", reason]);
      expect(failed.error.limit).toBe(Object.values(limits)[0]);
    }
    expect(await valueFrom("1")).toBe(1);
  });

  test("calls beyond inFlight wait and all answer", async () => {
    const code = "return (await Promise.all(Array.from({ length: 20 }, () => tools.slow()))).length";
    expect(await valueFrom(code, { limits: { inFlight: 10 } })).toBe(20);
  });

  test("waiting for a tool costs no script time", async () => {
    expect(
      await valueFrom("for (let i = 0; i < 2; i++) await tools.slow(); return 1", { limits: { cpuMs: 100 } }),
    ).toBe(1);
  });

  test("logs are cut with a mark and never fail an execution", async () => {
    const result = await execute("for (let i = 0; i < 2000; i++) console.log('x'.repeat(100)); return 1");
    expect(result).toMatchObject({ ok: true, logsTruncated: true });
  });

  test("a source that is too long is refused with the limit", async () => {
    expect((await failureOf(`return '${"é".repeat(200_000)}'`)).error).toMatchObject({
      code: "source_too_large",
    });
    expect(await valueFrom(`return '${"x".repeat(262_000)}'.length`)).toBe(262_000);
  });
});

describe("isolation", () => {
  for (const isolation of ["process", "reset"] as const) {
    test(`two executions never see each other (${isolation})`, async () => {
      await using own = { ...(await openBench({ isolation })), [Symbol.asyncDispose]: async () => undefined };
      const dirty =
        "Object.prototype.x = 1; Array.prototype.push = () => {}; globalThis.y = 1; Math.random = () => 1; globalThis.tools = 2; return 1";
      await own.codemode.execute(dirty);
      const clean = await own.codemode.execute("return [({}).x, typeof y, [1].push(2), typeof tools.echo]");
      expect(clean).toMatchObject({ ok: true, value: [undefined, "undefined", 2, "function"] });
      await own.codemode.close();
    });
  }

  test("logs of executions that overlap stay apart", async () => {
    const results = await Promise.all(
      ["A", "B", "C"].map((name) =>
        execute(`console.log('${name}'); await tools.slow(); console.log('${name}')`),
      ),
    );
    expect(results.map(({ logs }) => logs.map(({ text }) => text))).toEqual([
      ["A", "A"],
      ["B", "B"],
      ["C", "C"],
    ]);
  });

  test("constructors lead nowhere", async () => {
    const code =
      "const f = tools.echo.constructor; try { return f('return typeof host + typeof process.env')() } catch (e) { return e.name }";
    expect(await valueFrom(code)).toMatch(/undefinedfunction|Error/);
  });
});
