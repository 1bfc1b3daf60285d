/** The runtime keeps working, and meets no code of the guest, in a realm whose every intrinsic was replaced. */
import { beforeAll, describe, expect, test } from "vitest";
import { Guest, type RunOptions, type RunResult } from "../testing/guest.js";
import { poison } from "../testing/poison.js";

let guest: Guest;
beforeAll(async () => {
  guest = await Guest.create();
});

const host = {
  echo: (value: unknown) => value,
  boom: () => {
    throw Object.assign(new TypeError("boom"), { code: "E_BOOM" });
  },
};

/** `before` runs in the healthy realm, `after` in the poisoned one. */
function poisoned(before: string, after: string, options: RunOptions = {}): Promise<RunResult> {
  return guest.run(`${before};${poison};${after}`, { host, ...options });
}

describe("with every intrinsic replaced", () => {
  test("the poison is real: the language's own methods throw", async () => {
    const run = await poisoned("", "try { [1].map(x => x); return 'works' } catch (e) { return hits > 0 }");
    expect(run).toMatchObject({ status: "completed", value: true });
  });

  test("a host call goes out, comes back and its value is returned", async () => {
    const run = await poisoned(
      "const sent = {a: [1, 'x', null], b: {c: true}}",
      "return when(mine.call(sent), r => [r.a.length, r.a[1], r.b.c])",
    );
    expect(run).toMatchObject({ status: "completed", value: [3, "x", true], warnings: [], hostCalls: 1 });
    expect(run.calls).toEqual([{ position: 0, name: "echo", args: [{ a: [1, "x", null], b: { c: true } }] }]);
  });

  test("sending a call and a log line meets no accessor of the guest", async () => {
    const run = await poisoned(
      "const sent = {a: [1, 'x', null]}, more = new Map([[1, {d: new Date(0)}]]), e = new TypeError('t', {cause: 1})",
      "mine.call(sent); mine.call(more, undefined, 1n); mine.log('text', sent, more, e, [1, [2]]); mine.setTimeout(quiet, 1); return hits",
    );
    expect(run).toMatchObject({ status: "completed", value: 0 });
    expect(run.console[0]?.text).toContain("text { a:");
  });

  test("values of every kind cross in both directions", async () => {
    const run = await poisoned(
      `const u = new Uint8Array([1, 2, 3]);
       const sent = {d: new Date(5), r: /x/gi, m: new Map([[1, 2]]), s: new Set(['a']), b: 10n ** 20n, u, n: undefined, z: -0, l: [1,,3]};
       sent.self = sent`,
      "return when(mine.call(sent), r => r)",
    );
    const value = run.value as { self: unknown; d: Date; r: RegExp; m: Map<number, number>; u: Uint8Array };
    expect(run.status).toBe("completed");
    expect(value.self).toBe(value);
    expect(value.d).toEqual(new Date(5));
    expect(String(value.r)).toBe("/x/gi");
    expect(value.m).toEqual(new Map([[1, 2]]));
    expect(value).toMatchObject({ s: new Set(["a"]), b: 10n ** 20n, n: undefined, z: -0 });
    expect([...value.u]).toEqual([1, 2, 3]);
  });

  test("a rejected call arrives as an error with its own fields", async () => {
    const run = await poisoned(
      "",
      "return when(mine.boom(), undefined, e => [e.code, e.message, typeof e.stack, e.retryable])",
    );
    expect(run).toMatchObject({ status: "completed", value: ["E_BOOM", "boom", "string", false] });
  });

  test("timers and microtasks fire", async () => {
    const run = await poisoned(
      "const seen = ['', '', '']; let n = 0",
      `mine.setTimeout(v => { seen[n++] = v }, 5, 'timer'); mine.queueMicrotask(() => { seen[n++] = 'task' });
       return new mine.Promise(resolve => { mine.setTimeout(() => { resolve(seen) }, 10) })`,
    );
    expect(run).toMatchObject({ status: "completed", value: ["task", "timer", ""] });
  });

  test("what is thrown is reported with its data", async () => {
    const run = await poisoned(
      "const e = new TypeError('outer', {cause: new AggregateError([new Error('inner'), 5])}); e.code = 'E_X'",
      "throw e",
    );
    expect(run).toMatchObject({
      status: "script_error",
      error: { message: "outer", code: "E_X", cause: { errors: [{ message: "inner" }, { message: "5" }] } },
    });
  });

  test("an error of the engine itself is reported with its line", async () => {
    const run = await poisoned("", "null.foo");
    expect(run.error).toMatchObject({ message: "cannot read property 'foo' of null" });
    expect(run.error?.stack).toMatch(/script\.js:\d+:\d+/);
  });

  test("a missing grant is denied by name", async () => {
    const run = await poisoned("", "return host.nope(1)");
    expect(run).toMatchObject({ status: "script_error", code: "denied" });
    expect(run.error?.message).toContain("host.nope");
  });

  test("what cannot be sent is refused with its path", async () => {
    const run = await poisoned("", "return {rows: [{f() {}}]}");
    expect(run.error?.message).toMatch(/cannot send a function: \.rows\[0\]\.f$/);
  });

  test("a wait without end is noticed", async () => {
    const run = await poisoned("", "return new mine.Promise(() => {})");
    expect(run).toMatchObject({ status: "script_error", code: "deadlock" });
  });

  test("a lost rejection and an open call are warnings", async () => {
    const run = await poisoned(
      "const lost = new Error('lost')",
      "new mine.Promise((_, reject) => { reject(lost) }); mine.call(1); return 8",
    );
    expect(run.value).toBe(8);
    expect(run.warnings?.map(({ code }) => code)).toEqual(["call_not_awaited", "unhandled_rejection"]);
    expect(run.warnings?.[1]?.message).toContain("lost");
  });

  test("the limit of host calls ends the script", async () => {
    const run = await poisoned("let n = 0", "for (;;) { mine.call(n++) }", { limits: { hostCalls: 3 } });
    expect(run).toMatchObject({ status: "budget_exceeded", reason: "host_calls", limit: 3 });
  });
});

describe("single replacements", () => {
  test("a replaced Promise.prototype.then does not reach the runtime's waiting", async () => {
    const run = await guest.run(
      "Promise.prototype.then = function () { return 42 }; return await t.echo(7)",
      { host },
    );
    expect(run).toMatchObject({ status: "completed", value: 7 });
  });

  test("a replaced species does not keep the result from being seen", async () => {
    const run = await guest.run(
      `Object.defineProperty(Promise, Symbol.species, {get() { throw new Error('species') }});
       Promise.prototype.constructor = function Nothing() {}; return 1`,
      { host },
    );
    expect(run).toMatchObject({ status: "completed", value: 1 });
  });

  test("toJSON on every object forges nothing", async () => {
    const run = await guest.run(
      "Object.prototype.toJSON = Array.prototype.toJSON = String.prototype.toJSON = () => 'forged'; return [await t.echo({a: ['x']}), 'y']",
      { host },
    );
    expect(run).toMatchObject({ value: [{ a: ["x"] }, "y"], calls: [{ args: [{ a: ["x"] }] }] });
  });

  test("a toJSON that arrays inherit from a new prototype forges nothing", async () => {
    const run = await guest.run(
      "Object.setPrototypeOf(Array.prototype, {toJSON() { return 'forged' }}); return [[1], [2]]",
      { host },
    );
    expect(run).toMatchObject({ value: [[1], [2]] });
  });

  test("setters on the shared prototype see nothing of the runtime", async () => {
    const run = await guest.run(
      `let got = 0; for (const k of ['position','name','text','ok','value','error','status','0','1','2','then','next'])
         Object.defineProperty(Object.prototype, k, {__proto__: null, configurable: true, set(v) { got++ }, get() { return undefined }});
       const r = await t.echo({z: 1}); return [r.z, got]`,
      { host },
    );
    expect(run).toMatchObject({ value: [1, 0] });
  });

  test("iteration replaced on arrays, maps and sets changes no value", async () => {
    const run = await guest.run(
      `const none = () => ({next: () => ({done: true})});
       Array.prototype[Symbol.iterator] = none; Map.prototype[Symbol.iterator] = none; Map.prototype.forEach = () => {};
       Set.prototype[Symbol.iterator] = none; Set.prototype.forEach = () => {};
       return await t.echo([new Map([]).set(1, 2), new Set().add(3)])`,
      { host },
    );
    expect(run).toMatchObject({ value: [new Map([[1, 2]]), new Set([3])] });
  });

  test("nothing of the runtime is reachable from the global object", async () => {
    const run = await guest.run(
      "return Reflect.ownKeys(globalThis).filter(k => typeof k === 'string' && /flowcell|native|core-js|^self$|^prelude$/i.test(k))",
      { host },
    );
    expect(run.value).toEqual([]);
  });

  test("nothing of one activation is left for the next", async () => {
    await guest.run(
      "globalThis.left = 1; Object.prototype.left = 1; Array.prototype.push = () => {}; setTimeout(() => {}, 5); Math.random(); console.log(1); Symbol.for('k').description; return t.echo(1)",
      { host },
    );
    const run = await guest.run("return [typeof left, ({}).left, [1].push(2), await t.echo(3)]", { host });
    expect(run).toMatchObject({
      value: ["undefined", undefined, 2, 3],
      calls: [{ position: 0 }],
      console: [],
    });
  });
});

describe("hostile values", () => {
  test("a thenable that never returns is stopped by the budget", async () => {
    const run = await guest.run("return {get then() { while (true) {} }}", { host, interrupts: 200 });
    expect(run).toMatchObject({ stopped: true, status: "none" });
  });

  test("accessors on an error are not run for the report", async () => {
    const run = await guest.run(
      `const e = new Error('x'); for (const k of ['stack', 'message', 'name', 'cause', 'code']) Object.defineProperty(e, k, {get() { while (true) {} }}); throw e`,
      { host, interrupts: 200 },
    );
    expect(run).toMatchObject({ status: "script_error", error: { name: "Error", message: "" } });
  });

  test("a thrown object's methods are not run for the report", async () => {
    const run = await guest.run(
      "throw {get message() { while (true) {} }, toString() { while (true) {} }, get name() { while (true) {} }}",
      { host, interrupts: 200 },
    );
    expect(run.error?.message).toContain("[Getter]");
  });

  test("a thrown proxy is described without its traps", async () => {
    const run = await guest.run(
      "throw new Proxy(new TypeError('inside'), {get() { while (true) {} }, getPrototypeOf() { while (true) {} }, getOwnPropertyDescriptor() { while (true) {} }})",
      { host, interrupts: 200 },
    );
    expect(run).toMatchObject({ status: "script_error", error: { name: "TypeError", message: "inside" } });
  });

  test("a proxy whose traps throw is refused, not believed", async () => {
    const run = await guest.run(
      "try { return await t.echo(new Proxy({a: 1}, {ownKeys() { throw new Error('trap') }})) } catch (e) { return [e.code, e.message] }",
      { host },
    );
    expect(run.value).toEqual([
      "invalid_arguments",
      "host.echo: cannot read a property whose getter throws: [0] of the arguments",
    ]);
  });

  test("an entry whose name is an accessor is called all the same", async () => {
    const run = await guest.run(
      `(function () { const f = async (input, host) => host.echo(1); Object.defineProperty(f, 'name', {get() { throw 1 }}); Object.defineProperty(f, 'length', {get() { throw 1 }}); return {default: f} })`,
      { host, whole: true },
    );
    expect(run).toMatchObject({ status: "completed", value: 1 });
  });

  test("an array that claims four billion elements is refused at once", async () => {
    const run = await guest.run("const a = []; a.length = 4294967295; return a", { host });
    expect(run).toMatchObject({ status: "script_error", code: "unsendable" });
  });

  test("a proxied array that claims four billion elements does not hang", async () => {
    const run = await guest.run(
      "return await t.echo(new Proxy([], {get(o, k) { return k === 'length' ? 4294967295 : 1 }, getOwnPropertyDescriptor() { return {value: 1, configurable: true, enumerable: true, writable: true} }}))",
      { host, interrupts: 100_000 },
    );
    expect(["script_error", "none"]).toContain(run.status);
  });
});
