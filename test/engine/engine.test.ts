// The engine as the worker maps, limits and resets it, without the worker around it: what scripts come to, what running out
// of memory and stack comes to, that a reset leaves nothing and that a fault ends the process with its code.

import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { drive, evaluate, evaluateAll } from "./driver.js";

const MiB = 1024 * 1024;
/** Exit code engine_memory: a fault of the engine after it was refused memory. */
const exitMemory = 107;
/** Linear memory that the image of the tests has without growing. */
const imageBytes = evaluate("0").heapPeakBytes;

describe("scripts", () => {
  // The same text in V8 says what is right.
  const programs = {
    recursion: "(function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) })(22)",
    json: 'JSON.stringify(JSON.parse(\'{"a":[1,2.5,-0,1e21,"\\\\u2028\\\\ud800",null,true]}\'))',
    regexp:
      "'2026-11-29 user=alice'.replace(/(?<y>\\d+)-(\\d+)-(\\d+)/u, '$3.$2.$<y>').match(/\\w+=(\\w+)/)[1]",
    numbers:
      "[0.1 + 0.2, 2 ** 53, 1 / 3, -7 % 3, 5e-324, (255).toString(36), (1e21).toFixed(2), Math.hypot(3, 4)].join()",
    rounding:
      "[Math.round(-0.5), Math.trunc(-1.7), Math.floor(-1.2), Math.ceil(1.2), Math.fround(5.5), ~~-2.9].map((x) => Object.is(x, -0) ? '-0' : x).join()",
    integers:
      "[0x7fffffff | 0, 1 << 31, -1 >>> 0, Math.imul(0xffffffff, 5), 2n ** 200n, -(5n / 2n), Math.clz32(1)].join()",
    conversions:
      "[Number('0x1f'), Number(' 12 '), parseInt('12px'), +[], String([1, [2, 3]]), String({}), Number.MAX_SAFE_INTEGER + 2].join()",
    bits: "[1, 3, 255, 65535, 0x55555555].map((x) => x.toString(2).replaceAll('0', '').length).join()",
    classes:
      "class A { #x = 1; get x() { return this.#x } static s = 2 } class B extends A { x2 = this.x * 2 } [new B().x2, B.s].join()",
    generators:
      "[...(function* () { yield* [1, 2]; const [a, ...b] = [3, 4, 5]; yield a; yield b.length })()].join()",
    collections: "[...new Map([[NaN, 1], ['b', 2]]).entries()].join('|') + [...new Set([1, 1, 2])].join()",
    typed: "new Uint8Array(new Float64Array([Math.PI]).buffer).join()",
    sorting: "[5, 1, 4].toSorted().join() + ['b', 'a', 'C'].sort().join()",
    strings:
      "'äöü'.normalize('NFD').length + 'x'.padStart(3, 'ab') + 'a-b-c'.split('-').reverse().join('') + '😀'.codePointAt(0)",
    errors: "try { null.x } catch (e) { e instanceof TypeError }",
    closures:
      "(() => { const f = []; for (let i = 0; i < 3; i++) f.push(() => i); return f.map((g) => g()).join() })()",
    dates: "new Date(Date.UTC(2024, 1, 29, 12)).toISOString() + new Date(86400000).getUTCDay()",
  };
  it.each(Object.entries(programs))("compute what V8 computes: %s", (_, script) => {
    expect(evaluate(script)).toMatchObject({ outcome: "value", text: String(runInNewContext(script)) });
  });

  it("see the local time zone as UTC", () => {
    const script =
      "const d = new Date(1721995200000); [d.getHours(), d.getTimezoneOffset(), new Date(2024, 6, 1).getTime()].join()";
    expect(evaluate(script).text).toBe("12,0,1719792000000");
  });

  it("report an exception with its text and no failure", () => {
    expect(evaluate("throw new RangeError('mine')")).toMatchObject({
      outcome: "exception",
      text: "RangeError: mine",
      failure: "none",
    });
  });
});

describe("the prelude's functions", () => {
  it("are called with their arguments", () => {
    expect(drive(["calls"]).lines.map((line) => line["text"])).toEqual([
      'activate {"a":1}',
      'deliver {"a":1} 4 true',
      "idle ",
      "refuse SyntaxError: unexpected token in expression: ''",
    ]);
  });

  it("reach the natives by their ids, and only a string arrives as a string", () => {
    const script =
      "(n) => { n.send.hostCall1('text', new ArrayBuffer(3)); n.send.finished0({}); return n.cpuUs() + n.lastFailure() }";
    expect(drive(["start"], script).lines.slice(0, 3)).toMatchObject([
      { host_call: 0x201, arguments: [5, 6] },
      { host_call: 0x600, arguments: [6] },
      { outcome: "value", text: "12.5" },
    ]);
  });

  it("hear of rejections without a handler, and of handlers that come late", () => {
    const script =
      "({ rejections }) => { const p = Promise.reject('why'); Promise.resolve().then(() => p.catch(() => 0)); Promise.reject('second') }";
    const { lines } = drive(["start"], script);
    expect(lines.at(-1)).toMatchObject({ text: "idle why:object:false,second:object:false,why:object:true" });
  });

  it("hear of a rejection that happens because the stack is used up", () => {
    const script = "() => { async function f() { await f() } f() }";
    expect(drive(["start"], script).lines).toMatchObject([
      { text: "undefined" },
      { jobs: expect.any(Number) as number },
      { text: expect.stringContaining("InternalError: stack overflow:object:false") as string },
    ]);
  });

  it("read the failure that the engine recorded", () => {
    const script = "(n) => { try { (function f() { f() })() } catch { return n.lastFailure() } }";
    expect(drive(["start"], script).lines[0]).toMatchObject({ text: "stack" });
  });
});

describe("memory", () => {
  const hungry = {
    strings: "let s = 'x'; const a = []; for (;;) a.push(s += s.slice(0, 1000) + a.length)",
    buffers: "const a = []; for (;;) a.push(new ArrayBuffer(100000))",
    objects: "const a = []; for (;;) a.push({ a, i: a.length })",
    array: "const a = []; for (;;) a.push(1.5)",
    map: "const m = new Map(); for (let i = 0;; i++) m.set(i, [i])",
    closures: "let f = () => 0; for (;;) { const g = f; f = () => g }",
    doubling: "let s = 'ab'; for (;;) s = s.concat(s).toUpperCase()",
    typed: "let n = 1; const a = []; for (;;) a.push(new Float64Array(n *= 2))",
    properties: "const o = {}; for (let i = 0;; i++) o['p' + i] = i",
    regexp: "const a = []; for (let i = 0;; i++) a.push(new RegExp('a'.repeat(500) + i))",
    bigint: "const a = []; for (let n = 3n; ; n += 2n) a.push(n ** 400n)",
    source: "const a = []; for (let i = 0;; i++) a.push(new Function('return ' + 'x+'.repeat(3000) + i))",
    join: "const a = new Array(100000).fill('0123456789'); for (;;) a.push(a.join())",
  };
  const caps = [4, 7, 8, 16, 64];
  it.each(Object.entries(hungry))("%s run into every cap and are told so, never worse", (name, script) => {
    for (const cap of caps) {
      const { code, lines } = drive(["eval", `heap=${cap * MiB}`], script);
      // The engine's compiler does not survive every refusal in the middle of its work: that ends the process, and says why.
      if (name === "source" && code === exitMemory) continue;
      expect({ cap, code, lines }).toMatchObject({
        cap,
        code: 0,
        lines: [{ outcome: "exception", failure: "memory" }],
      });
      expect(lines[0]?.["heapPeakBytes"]).toBeLessThanOrEqual(Math.max(cap * MiB, imageBytes));
    }
  });

  it("is still refused after a script has caught the refusal many times", () => {
    const script =
      "let n = 0; const keep = []; for (let i = 0; i < 300; i++) { try { for (;;) keep.push(new ArrayBuffer(50000)) } catch { n++ } } n";
    expect(evaluate(script, { heap: 16 * MiB })).toMatchObject({
      outcome: "value",
      text: "300",
      failure: "memory",
    });
  });

  it("is used up to its cap exactly", () => {
    const script =
      "let n = 0; const keep = []; try { for (;;) { keep.push(new ArrayBuffer(65536)); n++ } } catch {} n";
    const { text, heapPeakBytes } = evaluate(script, { heap: 32 * MiB });
    expect(heapPeakBytes).toBe(32 * MiB);
    expect(Number(text)).toBeGreaterThan(400);
  });

  it("of cycles is collected before a cap is hit, however large their payload", () => {
    const payloads = [
      "new ArrayBuffer(1e6)",
      "'x'.repeat(1e6)",
      "new Array(1e5).fill(0)",
      "new Float64Array(1e5)",
      "[...Array(2e4)].map((_, k) => k + 0.5)",
    ];
    for (const payload of payloads) {
      const script = `for (let i = 0; i < 150; i++) { let o = { b: ${payload} }; o.self = o } 'done'`;
      for (const heap of [16 * MiB, 32 * MiB]) {
        const { text, failure, gcRuns } = evaluate(script, { heap });
        expect({ payload, heap, text, failure }).toEqual({ payload, heap, text: "done", failure: "none" });
        expect(gcRuns).toBeGreaterThan(3);
      }
    }
  });

  it("that grows in place is counted: arrays that hold themselves are collected", () => {
    const script =
      "for (let i = 0; i < 60; i++) { const a = [a]; for (let k = 0; k < 1e5; k++) a.push(k); a.push(a) } 'done'".replace(
        "[a]",
        "[]",
      );
    expect(evaluate(script, { heap: 24 * MiB })).toMatchObject({ text: "done", failure: "none" });
  });

  it("that is alive is not collected at every object where the cap leaves nothing", () => {
    // Exactly what the engine itself occupies.
    const script = "const a=[];for(let i=0;i<1e5;i++)a.push({i});a.length";
    const { failure, gcRuns } = evaluate(script, { heap: imageBytes });
    expect(failure).toBe("memory");
    expect(gcRuns).toBeLessThan(100);
  });

  it("that is alive is not collected over and over while other memory comes and goes", () => {
    const script =
      "const live = []; for (let i = 0; i < 150000; i++) live.push({ i }); let n = 0; for (let i = 0; i < 400000; i++) n += ('s' + i).repeat(20).length; n > 0";
    const { outcome, gcRuns } = evaluate(script, { heap: 64 * MiB });
    expect(outcome).toBe("value");
    expect(gcRuns).toBeLessThan(20);
  });

  it("is limited anew for each activation", () => {
    const script = "const a = []; try { for (;;) a.push(new ArrayBuffer(1e5)) } catch {} a.length";
    const results = evaluateAll(script, { heap: 20 * MiB, repeat: 5 });
    expect(new Set(results.map((one) => one.text)).size).toBe(1);
    expect(results.map((one) => one.heapPeakBytes)).toEqual(results.map(() => 20 * MiB));
  });
});

describe("the stack", () => {
  const nest = (depth: number, open: string, middle: string, close: string): string =>
    `${JSON.stringify(open)}.repeat(${depth}) + ${JSON.stringify(middle)} + ${JSON.stringify(close)}.repeat(${depth})`;
  const caught = (body: string): string =>
    `(() => { try { ${body} } catch (e) { return e.name + ': ' + e.message } })()`;
  const shapes: Readonly<Record<string, string>> = {
    function: caught("let n = 0; function f() { n++; f() } f()"),
    mutual: caught("const f = (x) => g(x), g = (x) => f(x); f(1)"),
    "many arguments": caught("function f(...a) { return f(...a) } f(...new Array(300))"),
    apply: caught("function f() { f.apply(this, new Array(1000)) } f()"),
    getter: caught("const o = { get x() { return this.x } }; return o.x"),
    setter: caught("const o = { set x(v) { this.x = v } }; o.x = 1"),
    conversion: caught("const o = { toString() { return '' + o } }; return '' + o"),
    constructor: caught("class A { constructor() { new A() } } new A()"),
    iterator: caught("const o = { *[Symbol.iterator]() { yield* o } }; return [...o]"),
    comparator: caught("const f = () => [2, 1].sort(f); f()"),
    replacer: caught("const f = () => 'aa'.replace(/a/g, f); f()"),
    reviver: caught("const f = () => JSON.parse('[1]', f); f()"),
    toJSON: caught("const o = { toJSON() { return JSON.stringify(o) } }; JSON.stringify(o)"),
    "proxy trap": caught("const p = new Proxy({}, { get: (t, k) => p[k] }); return p.x"),
    "proxy chain": caught(
      "let p = {}; for (let i = 0; i < 100000; i++) p = new Proxy(p, {}); return String(p.x)",
    ),
    "proxy chain has": caught(
      "let p = {}; for (let i = 0; i < 50000; i++) p = new Proxy(p, {}); return 'x' in p",
    ),
    "prototype chain": caught(
      "let o = {}; for (let i = 0; i < 100000; i++) o = Object.create(o); return String(o.x)",
    ),
    bound: caught("let f = () => 0; for (let i = 0; i < 6000; i++) f = f.bind(null); return f()"),
    "nested arrays to text": caught(
      "let a = []; for (let i = 0; i < 100000; i++) a = [a]; return String(a).length",
    ),
    "nested arrays to JSON": caught(
      "let a = []; for (let i = 0; i < 10000; i++) a = [a]; return JSON.stringify(a).length",
    ),
    "nested objects to JSON": caught(
      "let a = {}; for (let i = 0; i < 10000; i++) a = { a }; return JSON.stringify(a).length",
    ),
    "JSON arrays": caught(`return JSON.parse(${nest(100000, "[", "", "]")}).length`),
    "JSON objects": caught(`return typeof JSON.parse(${nest(100000, '{"a":', "1", "}")})`),
    flat: caught(
      "let a = []; a.push(a); for (let i = 0; i < 100000; i++) a = [a]; return a.flat(Infinity).length",
    ),
    "eval parentheses": caught(`return eval(${nest(100000, "(", "1", ")")})`),
    "eval arrays": caught(`return eval(${nest(50000, "[", "", "]")}).length`),
    "eval blocks": caught(`return eval(${nest(50000, "{", "", "}")})`),
    "eval functions": caught(`return typeof eval(${nest(20000, "(function(){return ", "1", "})")})`),
    "eval unary": caught("return eval('-'.repeat(2) + '!'.repeat(100000) + '1')"),
    "eval conditionals": caught("return eval('1?'.repeat(50000) + '1' + ':1'.repeat(50000))"),
    "eval templates": caught(`return eval(${nest(20000, "`${", "1", "}`")})`),
    "eval assignments": caught("return eval('var a; ' + 'a='.repeat(50000) + '1')"),
    "eval powers": caught("return eval('1**'.repeat(50000) + '1')"),
    "eval arrows": caught("return typeof eval('a=>'.repeat(30000) + '1')"),
    "eval patterns": caught(`return eval('var ' + ${nest(30000, "[", "a", "]")} + '=1')`),
    "eval ifs": caught("return eval('if(1)'.repeat(50000) + '1')"),
    "eval classes": caught(`return typeof eval(${nest(2000, "(class{static x=", "1", "})")})`),
    "eval calls": caught(`return eval('f=x=>x;' + ${nest(50000, "f(", "1", ")")})`),
    "regexp groups": caught(`return new RegExp(${nest(50000, "(?:", "", ")")}).source.length`),
    "regexp captures": caught(`return new RegExp(${nest(200, "(", "", ")")}).source.length`),
    "regexp lookaheads": caught(`return new RegExp(${nest(50000, "(?=", "", ")")}).source.length`),
    "regexp sets": caught(`return new RegExp(${nest(50000, "[", "a", "]")}, 'v').source.length`),
    "regexp run": caught("return /^(?:(?:a|b)c?)*$/.test('ab'.repeat(100000))"),
    rope: caught(
      "let s = 'abcdefgh'.repeat(2000); for (let i = 0; i < 5000; i++) s = (i & 1 ? s + 'x' : 'x' + s); return s.length",
    ),
    "error cause": caught(
      "let e = new Error('x'); for (let i = 0; i < 50000; i++) e = new Error('x', { cause: e }); return String(e)",
    ),
    "promise chain": caught(
      "let p = Promise.resolve(); for (let i = 0; i < 50000; i++) p = Promise.resolve(p).then(() => p); return 'made'",
    ),
    async: caught("async function f() { await f() } f(); return 'made'"),
    "garbage list": caught(
      "let o = null; for (let i = 0; i < 300000; i++) o = { o }; o = null; return 'freed'",
    ),
    "garbage closures": caught(
      "let f = null; for (let i = 0; i < 200000; i++) { const g = f; f = () => g } f = null; return 'freed'",
    ),
    "structured map": caught(
      "let m = new Map(); for (let i = 0; i < 100000; i++) m = new Map([[m, m]]); m = null; return 'freed'",
    ),
  };
  it.each(Object.entries(shapes))("survives %s", (_, script) => {
    for (const stack of [16 * 1024, MiB]) {
      const { outcome, text, failure, cStackBytes } = evaluate(script, { stack, heap: 256 * MiB });
      // A result, or something that a script can catch; what is not caught here is lack of memory.
      expect(outcome === "value" || failure === "memory").toBe(true);
      if (text?.includes("stack overflow")) expect(failure).toBe("stack");
      // The 64 MiB of C stack hold three times what the worst shape needs.
      expect(cStackBytes).toBeLessThan(24 * MiB);
    }
  });

  it("is as deep as its limit allows", () => {
    const depth = (stack: number): number =>
      Number(evaluate("let n = 0; try { (function f() { n++; f() })() } catch {} n", { stack }).text);
    expect(depth(MiB)).toBeGreaterThan(5000);
    expect(depth(512 * 1024)).toBeLessThan(depth(MiB));
    // Beyond the largest it does not grow.
    expect(depth(64 * MiB)).toBe(depth(MiB));
  });

  it("is there again in full after it overflowed", () => {
    const script =
      "let a = 0, b = 0; try { (function f() { a++; f() })() } catch {} try { (function f() { b++; f() })() } catch {} a === b";
    expect(evaluate(script).text).toBe("true");
  });
});

describe("the interrupt hook", () => {
  it.each([
    ["a loop", "for (;;) {}"],
    ["recursion that catches its overflow", "for (;;) try { (function f() { f() })() } catch {}"],
    ["a regular expression", "/(a+)+$/.test('a'.repeat(40) + 'b')"],
    ["a sort with a comparator", "const a = [...Array(1e5).keys()]; for (;;) a.sort((x, y) => y - x)"],
  ])("is polled during %s, and a script is left from there", (_, script) => {
    expect(drive(["eval", "abandon=20"], script)).toMatchObject({ code: 0, lines: [] });
  });
});

describe("a reset", () => {
  it("leaves nothing: not in the image, above it, on the stack, in the state, in the random generator", () => {
    const [touched, before, traces, after, regrown] = drive(["reset"]).lines;
    expect(touched).toEqual({ untouched: true });
    expect(traces).toEqual({
      dirtied: true,
      image: true,
      above: true,
      top: true,
      size: true,
      state: true,
      instance: true,
      stackBytes: 0,
    });
    expect(after).toMatchObject({ text: before?.["text"], failure: "none", gcRuns: 0 });
    expect(regrown).toEqual({ regrownBytes: 0 });
  });

  it("works from any point at which a script is abandoned", () => {
    expect(drive(["abandon", "400"])).toMatchObject({ code: 0, lines: [{ abandoned: 400 }] });
  });

  it("makes every run of a script the same", () => {
    const script =
      "globalThis.n = (globalThis.n ?? 0) + 1; Object.prototype.x = 1; [n, Math.random(), Object.keys(globalThis).length].join()";
    const results = evaluateAll(script, { repeat: 20 });
    expect(results).toHaveLength(20);
    expect(new Set(results.map((one) => one.text)).size).toBe(1);
  });
});

describe("a fault ends the process with its code", () => {
  it.each([
    ["address", 81, "an address outside of linear memory"],
    ["table", 81, "an indirect call of a function of another type"],
    ["row", 81, "an indirect call beyond the table"],
    ["abort", 81, "an abort of the engine"],
    ["memory", exitMemory, "an abort of the engine after it was refused memory"],
    ["stack", 82, "the guard below the C stack"],
    ["null", 83, "an address of the shim's own"],
  ])("%s: %i for %s", (kind, code) => {
    expect(drive(["die", kind])).toMatchObject({ code, signal: null, lines: [] });
  });
});
