/** How an activation begins and ends: entry, outcomes, waiting, host calls and their limits. */
import { beforeAll, describe, expect, test } from "vitest";
import { Guest, sentValue } from "../testing/guest.js";

let guest: Guest;
beforeAll(async () => {
  guest = await Guest.create();
});

const host = {
  echo: (value: unknown) => value,
  two: (...args: unknown[]) => args.length,
  boom: () => {
    throw Object.assign(new TypeError("boom"), { code: "E_BOOM" });
  },
  slow: () => "slow",
};

const namesOf = (frames: readonly { name: string }[]): string[] => frames.map(({ name }) => name);

describe("the entry", () => {
  test("is called with the input and the host object", async () => {
    const run = await guest.run("return [input, Object.keys(host), arguments.length >= 2]", {
      host,
      input: { a: [1, undefined, new Date(0)] },
    });
    expect(run).toMatchObject({
      status: "completed",
      value: [{ a: [1, undefined, new Date(0)] }, ["echo", "two", "boom", "slow", "log"], true],
    });
  });

  test("may be an accessor of the exports, as bundles have it", async () => {
    const run = await guest.run(
      "(function () { const e = {}; Object.defineProperty(e, 'default', {get: () => () => 5, enumerable: true}); return e })",
      { whole: true },
    );
    expect(run).toMatchObject({ status: "completed", value: 5 });
  });

  test("may be a plain function or return a thenable", async () => {
    const plain = await guest.run("(function () { return {default: (i, h) => 1} })", { whole: true });
    expect(plain.value).toBe(1);
    const thenable = await guest.run("(function () { return {default: () => ({then(f) { f(7) }})} })", {
      whole: true,
    });
    expect(thenable.value).toBe(7);
  });

  test.each([
    ["(function () { return {} })", "no default export function"],
    ["(function () { return undefined })", "no default export function"],
    ["(function () { return {default: 'text'} })", "not a function but of type string"],
    ["(function () { return {default: null} })", "not a function but null"],
    ["(function () { return Object.create({default() {}}) })", "no default export function"],
  ])("is asked for clearly when %s has none", async (script, message) => {
    const run = await guest.run(script, { whole: true });
    expect(run).toMatchObject({ status: "script_error", code: "no_entry" });
    expect(run.error?.message).toContain(message);
  });

  test("sees its own frames only", async () => {
    const run = await guest.run(
      `const seen = [new Error().stack];
       await null; seen.push(new Error().stack);
       await new Promise(r => setTimeout(function timer() { seen.push(new Error().stack); r() }, 1));
       await new Promise(r => queueMicrotask(function task() { seen.push(new Error().stack); r() }));
       return seen`,
    );
    for (const stack of run.value as string[]) {
      expect(stack).toMatch(/script\.js:\d+:\d+/);
      expect(stack).not.toContain("prelude");
    }
  });

  test("that throws while the script loads is an error of the script", async () => {
    const run = await guest.run("(function () { throw new RangeError('early') })", { whole: true });
    expect(run).toMatchObject({ status: "script_error", error: { name: "RangeError", message: "early" } });
  });
});

describe("the end", () => {
  test("a text that is no JavaScript is refused, and nothing of it runs", async () => {
    const run = await guest.run("(function () { let = ; })", { whole: true });
    expect(run.status).toBe("refused");
    expect(run.refused).toMatchObject({ name: "SyntaxError" });
    expect(run.refused?.message).toMatch(/not valid JavaScript/);
    expect(run.refused?.stack).toMatch(/script\.js:1:\d+/);
    expect(namesOf(run.frames)).toEqual(["refused"]);
  });

  test("is Finished once and last, after all jobs", async () => {
    const run = await guest.run("Promise.resolve().then(() => console.log('job')); return 1");
    expect(namesOf(run.frames)).toEqual(["console", "finished0"]);
  });

  test("a rejected promise that the entry returns is the script's error", async () => {
    const run = await guest.run("return Promise.reject(new Error('no'))");
    expect(run).toMatchObject({ status: "script_error", error: { message: "no" }, warnings: [] });
  });

  test("a wait for nothing is an error that says so", async () => {
    const run = await guest.run("await new Promise(() => {})");
    expect(run).toMatchObject({ status: "script_error", code: "deadlock" });
    expect(run.error?.message).toContain("never");
  });

  test("a wait for a job that the engine had no memory for is the lack of memory", async () => {
    const run = await guest.run(
      "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})",
      { heapBytes: 12 * 1024 * 1024, interrupts: 1_000_000 },
    );
    expect(run).toMatchObject({ status: "budget_exceeded", reason: "memory" });
  });

  test("an exception of a timer's callback ends the script", async () => {
    const run = await guest.run(
      "setTimeout(() => { throw new Error('timer') }, 1); await new Promise(() => {})",
    );
    expect(run).toMatchObject({ status: "script_error", error: { message: "timer" } });
  });

  test("an exception of a microtask ends the script", async () => {
    const run = await guest.run(
      "queueMicrotask(() => { throw new Error('task') }); await new Promise(() => {})",
    );
    expect(run).toMatchObject({ status: "script_error", error: { message: "task" } });
  });

  test("an exception after the entry settled is a warning", async () => {
    const run = await guest.run(
      "Promise.resolve().then(() => queueMicrotask(() => { throw new Error('late') })); return 1",
    );
    expect(run).toMatchObject({ status: "completed", value: 1, warnings: [{ code: "uncaught_error" }] });
  });

  test("an outcome for the activation before is dropped", () => {
    guest.start("return t.echo(1)", { host });
    guest.deliverStale(0);
    expect(guest.finished).toBe(false);
    guest.deliverOutcome(0, { value: 2 });
    expect(guest.finished).toBe(true);
  });

  test("an outcome for a call that is not open is ignored", () => {
    guest.start("return t.echo(1)", { host });
    guest.deliverOutcome(5, { value: 1 });
    guest.deliverOutcome(0, { value: 2 });
    expect(guest.finished).toBe(true);
  });
});

describe("engine failures", () => {
  test.each(["null", "new InternalError('out of memory')", "new RangeError('x')"])(
    "an uncaught %s after the engine failed is the engine's failure",
    async (thrown) => {
      const run = await guest.run(`throw ${thrown}`, { failure: "memory" });
      expect(run).toMatchObject({ status: "budget_exceeded", reason: "memory" });
    },
  );

  test("any other error keeps its own name", async () => {
    const run = await guest.run("null.foo", { failure: "memory" });
    expect(run).toMatchObject({ status: "script_error", error: { name: "TypeError" } });
  });

  test("without a failure of the engine the same errors are the script's", async () => {
    const run = await guest.run("throw new InternalError('out of memory')");
    expect(run).toMatchObject({ status: "script_error", error: { name: "InternalError" } });
  });

  test("recursion without end is told as what the engine saw", async () => {
    const run = await guest.run("const f = () => f(); f()", { failure: "stack" });
    expect(run).toMatchObject({ status: "budget_exceeded", reason: "stack" });
  });

  test("memory that runs out is told as that", async () => {
    const small = await Guest.create();
    const run = await small.run(
      "const c = []; for (let i = 0; i < 400; i++) c.push('x'.repeat(1e6) + i); return 1",
      {
        heapBytes: 24 * 2 ** 20,
      },
    );
    expect(run).toMatchObject({ status: "budget_exceeded", reason: "memory" });
  });

  test("a caught lack of memory does not name a later error", async () => {
    const small = await Guest.create();
    const run = await small.run("try { new Array(1e8).fill(0) } catch {} null.foo", {
      heapBytes: 24 * 2 ** 20,
    });
    expect(run).toMatchObject({ status: "script_error", error: { name: "TypeError" } });
  });
});

describe("host calls", () => {
  test("have positions in the order in which they were made", async () => {
    const run = await guest.run(
      "await t.echo('a'); await Promise.all([t.two(1, 2), t.echo('c')]); return 1",
      { host },
    );
    expect(run.calls).toEqual([
      { position: 0, name: "echo", args: ["a"] },
      { position: 1, name: "two", args: [1, 2] },
      { position: 2, name: "echo", args: ["c"] },
    ]);
    expect(run.hostCalls).toBe(3);
  });

  test("keep every argument", async () => {
    const run = await guest.run(
      "return [await t.two(1, {a: 2}, undefined), await t.two(), await t.two(null)]",
      { host },
    );
    expect(run.value).toEqual([3, 0, 1]);
    expect(run.calls[0]?.args).toEqual([1, { a: 2 }, undefined]);
  });

  test("are promises before they settle", async () => {
    const run = await guest.run(
      "const p = t.echo(5); return [typeof p.then, p instanceof Promise, await p]",
      { host },
    );
    expect(run.value).toEqual(["function", true, 5]);
  });

  test("are encoded when they are made", async () => {
    const run = await guest.run("const o = {a: 1}; const p = t.echo(o); o.a = 2; return await p", { host });
    expect(run.value).toEqual({ a: 1 });
  });

  test("beyond the in-flight limit wait their turn and go out in order", () => {
    guest.start("return Promise.all([0, 1, 2, 3, 4].map(i => t.echo(i)))", { host, limits: { inFlight: 2 } });
    const sent = (): unknown[] =>
      guest
        .take()
        .filter(({ name }) => name.startsWith("hostCall"))
        .map(sentValue);
    expect(sent()).toEqual([[0], [1]]);
    guest.deliverOutcome(1, { value: "b" });
    expect(sent()).toEqual([[2]]);
    guest.deliverOutcome(0, { value: "a" });
    expect(sent()).toEqual([[3]]);
    guest.deliverOutcome(2, { value: "c" });
    guest.deliverOutcome(3, { value: "d" });
    guest.deliverOutcome(4, { value: "e" });
    const last = guest.frames.at(-1);
    expect(last === undefined ? undefined : sentValue(last)).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("are refused at the limit, which ends the script although it catches everything", async () => {
    const run = await guest.run("for (;;) { try { await t.echo(1) } catch {} finally { continue } }", {
      host,
      limits: { hostCalls: 5 },
    });
    expect(run).toMatchObject({
      status: "budget_exceeded",
      reason: "host_calls",
      limit: 5,
      used: 6,
      hostCalls: 5,
    });
    expect(run.calls).toHaveLength(5);
  });

  test("none are allowed with a limit of 0", async () => {
    const run = await guest.run("return t.echo(1)", { host, limits: { hostCalls: 0 } });
    expect(run).toMatchObject({ reason: "host_calls", calls: [] });
  });

  test("500 at once work", async () => {
    const run = await guest.run(
      "const r = await Promise.all(Array.from({length: 500}, (_, i) => t.echo(i))); return r.reduce((a, b) => a + b, 0)",
      { host },
    );
    expect(run.value).toBe(124_750);
  });

  test("race, any and allSettled are the language's own", async () => {
    const run = await guest.run(
      `const s = await Promise.allSettled([t.echo(1), t.boom()]);
       return [await Promise.race([t.slow(), t.echo('fast')]), await Promise.any([t.boom(), t.echo('x')]), s[0].value, s[1].reason.code]`,
      { host },
    );
    expect(run.value).toEqual(["slow", "x", 1, "E_BOOM"]);
  });

  test("that are open at the end are warnings that name them", async () => {
    const run = await guest.run("t.slow(); t.echo(1); return 1", { host });
    expect(run.warnings?.map(({ code }) => code)).toEqual(["call_not_awaited", "call_not_awaited"]);
    expect(run.warnings?.[0]?.message).toContain("host.slow (call 0)");
  });

  test("rejected and lost are a warning; handled later, none", async () => {
    const lost = await guest.run("t.boom(); await t.echo(1); return 'ok'", { host });
    expect(lost.warnings).toMatchObject([
      { code: "unhandled_rejection", message: expect.stringContaining("boom") },
    ]);
    const late = await guest.run(
      "const p = t.boom(); await null; await t.echo(1); await t.echo(2); try { await p } catch {} return 'ok'",
      { host },
    );
    expect(late).toMatchObject({ value: "ok", warnings: [] });
  });

  test("warnings are bounded", async () => {
    const run = await guest.run(
      "for (let i = 0; i < 5000; i++) Promise.reject(new Error('lost '.repeat(1000))); return 1",
    );
    expect(run.warnings?.length).toBe(32);
    expect(run.frames.at(-1)?.text.length).toBeLessThan(256 * 1024);
  });
});

describe("errors of host calls", () => {
  test("carry the function's own name, message and code, and the place of the call", async () => {
    const run = await guest.run(
      "try {\n  await t.boom()\n} catch (e) { return [e.name, e.message, e.code, e.retryable, e instanceof HostError, e instanceof Error, e.stack] }",
      { host },
    );
    const [name, message, code, retryable, isHostError, isError, stack] = run.value as unknown[];
    expect([name, message, code, retryable, isHostError, isError]).toEqual([
      "TypeError",
      "boom",
      "E_BOOM",
      false,
      true,
      true,
    ]);
    expect(stack).toMatch(/^ {4}at default \(script\.js:3:\d+\)$/);
  });

  test("carry the codes of the protocol with detail and retryable", () => {
    guest.start(
      "try { await t.echo(1) } catch (e) { return [e.name, e.code, e.detail, e.retryable, String(e)] }",
      { host },
    );
    guest.deliverOutcome(0, {
      error: { code: "unavailable", message: "try later", retryable: true, detail: { after: 5 } },
    });
    const last = guest.frames.at(-1);
    expect(last === undefined ? undefined : sentValue(last)).toEqual([
      "HostError",
      "unavailable",
      { after: 5 },
      true,
      "HostError: try later",
    ]);
  });

  test("uncaught name their code in the outcome", () => {
    guest.start("await t.echo(1)", { host });
    guest.deliverOutcome(0, { error: { code: "not_found", message: "gone", retryable: false } });
    expect(JSON.parse(guest.frames.at(-1)?.text ?? "{}")).toMatchObject({
      status: "script_error",
      code: "not_found",
      error: { name: "HostError", message: "gone", code: "not_found" },
    });
  });

  test("a script's own HostError does not set the outcome's code", async () => {
    const run = await guest.run("throw new HostError('mine', {code: 'denied'})");
    expect(run).toMatchObject({ status: "script_error", error: { name: "HostError", code: "denied" } });
    expect(run.code).toBeUndefined();
  });

  test.each([
    ["() => {}", "invalid_arguments", "host.echo: cannot send a function: [0] of the arguments"],
    [
      "{rows: [{}, {f() {}}]}",
      "invalid_arguments",
      "host.echo: cannot send a function: [0].rows[1].f of the arguments",
    ],
    ["Symbol('x')", "invalid_arguments", "host.echo: cannot send a symbol: [0] of the arguments"],
    [
      "new (class Mine {})",
      "invalid_arguments",
      "host.echo: cannot send an instance of Mine: [0] of the arguments",
    ],
    [
      "Promise.resolve(1)",
      "invalid_arguments",
      "host.echo: cannot send a promise that was not awaited: [0] of the arguments",
    ],
    ["'x'.repeat(200)", "too_large", "host.echo: cannot send a value of more than 100 bytes of text"],
    ["'é'.repeat(60)", "too_large", "host.echo: cannot send a value of more than 100 bytes of text"],
    [
      "new Uint8Array(200)",
      "too_large",
      "host.echo: cannot send more than 150 bytes of binary data in one value: [0].buffer of the arguments",
    ],
  ])("refuse %s before anything is sent", async (argument, code, message) => {
    const run = await guest.run(
      `try { await t.echo(${argument}) } catch (e) { return [e.code, e.message, e.stack.includes('script.js')] }`,
      {
        host,
        limits: { valueBytes: 100, bodyBytes: 150, resultBytes: 10_000 },
      },
    );
    expect(run).toMatchObject({ status: "completed", value: [code, message, true], calls: [], hostCalls: 0 });
  });
});

describe("cancelling", () => {
  test("an aborted signal cancels the call once and rejects it with its reason", () => {
    guest.start(
      `const c = new AbortController(); const p = t.echo(1, {signal: c.signal});
       await t.echo(2); c.abort(new Error('enough')); c.abort();
       try { await p } catch (e) { return [e.message, c.signal.aborted] }`,
      { host },
    );
    const calls = guest.take().filter(({ name }) => name === "hostCall0");
    expect(calls.map(sentValue)).toEqual([[1], [2]]);
    guest.deliverOutcome(1, { value: 2 });
    expect(namesOf(guest.take())).toEqual(["cancelCall", "finished0"]);
    expect(guest.frames.find(({ name }) => name === "cancelCall")?.text).toBe('{"position":0}');
  });

  test("a call cancelled and not answered still counts as open", () => {
    guest.start(
      `const c = new AbortController(); t.echo(0, {signal: c.signal}).catch(() => {}); c.abort(); await t.echo(1); await t.echo(2); return 3`,
      { host, limits: { inFlight: 1 } },
    );
    expect(guest.take().map(({ name }) => name)).toEqual(["hostCall0", "cancelCall", "blocked"]);
    guest.deliverOutcome(0, { error: { code: "cancelled", message: "", retryable: false } });
    expect(
      guest
        .take()
        .filter(({ name }) => name === "hostCall0")
        .map(sentValue),
    ).toEqual([[1]]);
  });

  test("a call aborted while it waits is never sent", () => {
    guest.start(
      `const c = new AbortController(); const a = t.echo(0); const b = t.echo(1, {signal: c.signal}); const d = t.echo(2);
       c.abort(); try { await b } catch (e) { await a; await d; return e.name }`,
      { host, limits: { inFlight: 1 } },
    );
    guest.deliverOutcome(0, { value: 0 });
    guest.deliverOutcome(2, { value: 2 });
    expect(
      guest.frames.filter(({ name }) => name.startsWith("hostCall")).map(({ text }) => text.split("\n")[0]),
    ).toEqual(['{"position":0,"name":"echo"}', '{"position":2,"name":"echo"}']);
    const last = guest.frames.at(-1);
    expect(last === undefined ? undefined : sentValue(last)).toBe("AbortError");
  });

  test("a signal that has aborted already makes no call", async () => {
    const run = await guest.run(
      "try { await t.echo(1, {signal: AbortSignal.abort('no')}) } catch (e) { return e }",
      { host },
    );
    expect(run).toMatchObject({ value: "no", calls: [], hostCalls: 0 });
  });

  test("the signal is not an argument; what stands beside it is", async () => {
    const run = await guest.run(
      `const {signal} = new AbortController();
       await t.echo(1, {signal}); await t.echo({url: 'u', signal}); await t.echo(signal); await t.echo({signal: 'text'}); return 1`,
      { host },
    );
    expect(run.calls.map(({ args }) => args)).toEqual([[1], [{ url: "u" }], [], [{ signal: "text" }]]);
  });

  test("an abort after the outcome sends nothing", async () => {
    const run = await guest.run(
      "const c = new AbortController(); const r = await t.echo(1, {signal: c.signal}); c.abort(); return r",
      { host },
    );
    expect(run).toMatchObject({ value: 1 });
    expect(namesOf(run.frames)).not.toContain("cancelCall");
  });

  test("a signal whose methods were replaced still cancels", () => {
    guest.start(
      `const c = new AbortController(); const p = t.echo(1, {signal: c.signal});
       AbortSignal.prototype.addEventListener = EventTarget.prototype.dispatchEvent = () => { throw 1 };
       Object.defineProperty(AbortSignal.prototype, 'aborted', {get: () => false});
       c.abort('stop'); try { await p } catch (e) { return e }`,
      { host },
    );
    expect(namesOf(guest.frames)).toContain("cancelCall");
    expect(guest.finished).toBe(true);
  });
});

describe("results", () => {
  test("over the limit are told with how much and where", async () => {
    const run = await guest.run("return {meta: 1, rows: Array.from({length: 2000}, (_, i) => ({i}))}", {
      limits: { resultBytes: 1000 },
    });
    expect(run).toMatchObject({ status: "budget_exceeded", reason: "result_size", limit: 1000 });
    expect(run.used).toBeGreaterThan(10_000);
    expect(run.warnings).toMatchObject([{ code: "result_size", message: expect.stringContaining(".rows") }]);
  });

  test("a huge string is refused within the limit of memory", async () => {
    const run = await guest.run("return 'x'.repeat(5e6)");
    expect(run).toMatchObject({
      status: "budget_exceeded",
      reason: "result_size",
      limit: 1_048_576,
      used: 5_000_002,
    });
  });

  test("a rope of 256 MiB is refused without being flattened", async () => {
    const run = await guest.run("let s = 'x'; for (let i = 0; i < 28; i++) s += s; return {s}", {
      heapBytes: 40 * 2 ** 20,
    });
    expect(run).toMatchObject({ status: "budget_exceeded", reason: "result_size" });
  });

  test("binary data over its own limit is told as that", async () => {
    const run = await guest.run("return new Uint8Array(3000)", { limits: { bodyBytes: 2000 } });
    expect(run).toMatchObject({ reason: "result_size", limit: 2000, used: 3000 });
  });

  test.each([
    ["{f() {}, s: Symbol('x')}", "the result: cannot send a function: .f"],
    ["new Map([['k', () => {}]])", 'the result: cannot send a function: .get("k")'],
    ["[new WeakMap()]", "the result: cannot send an instance of WeakMap: [0]"],
    ["{get x() { throw new Error('getter') }}", "the result: cannot read a property whose getter throws: .x"],
    ["{[Symbol('k')]: 1}", "the result: cannot send a property whose key is a symbol"],
    ["host", "the result: cannot send a function: .echo"],
  ])("%s is refused with its path", async (value, message) => {
    const run = await guest.run(`return ${value}`, { host });
    expect(run).toMatchObject({ status: "script_error", code: "unsendable" });
    expect(run.error?.message.startsWith(message), run.error?.message).toBe(true);
  });

  test("never hold the source of a function", async () => {
    const run = await guest.run("return {f() { return 'secret source' }}");
    expect(JSON.stringify(run.frames)).not.toContain("secret source");
  });
});

describe("code generation", () => {
  const attempts = `[
    () => eval('1'), () => (0, eval)('1'), () => new Function('return 1')(), () => Function('return 1')(),
    () => (async () => {}).constructor('return 1'), () => (function* () {}).constructor('yield 1'),
    () => (async function* () {}).constructor('yield 1'), () => (() => {}).constructor('return 1'),
    () => Reflect.construct(Function, ['return 1']), () => Object.getPrototypeOf((async () => {}).constructor)('return 1'),
    () => (class extends Function {}).constructor('return 1'), () => new (class extends Function {})('return 1'),
  ]`;

  test("works inside the guest by default", async () => {
    const run = await guest.run(
      `return ${attempts}.map(f => { try { f(); return 'ran' } catch (e) { return e.name } })`,
    );
    expect(new Set(run.value as string[])).toEqual(new Set(["ran"]));
  });

  test("is refused everywhere when the activation forbids it", async () => {
    const run = await guest.run(
      `return [${attempts}.map(f => { try { f(); return 'ran' } catch (e) { return e.name } }), (() => {}) instanceof Function, typeof eval]`,
      { codeGeneration: false },
    );
    const [names, isFunction, type] = run.value as [string[], boolean, string];
    expect(new Set(names)).toEqual(new Set(["EvalError"]));
    expect([isFunction, type]).toEqual([true, "function"]);
  });

  test("forbidden in one activation is back in the next", async () => {
    await guest.run("return 1", { codeGeneration: false });
    expect((await guest.run("return eval('40 + 2')")).value).toBe(42);
  });

  test("compiles nothing that reaches further than the script", async () => {
    const run = await guest.run(
      "return [Function('return typeof __flowcell_native')(), (0, eval)('typeof globalThis.__flowcell_native')]",
    );
    expect(run.value).toEqual(["undefined", "undefined"]);
  });
});
