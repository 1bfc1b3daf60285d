/** console: levels, Node's formatting, bounds, and no guest code run for a line. */
import { beforeAll, describe, expect, test } from "vitest";
import { type ConsoleLine, Guest, type RunOptions } from "../testing/guest.js";

let guest: Guest;
beforeAll(async () => {
  guest = await Guest.create();
});

async function lines(body: string, options: RunOptions = {}): Promise<readonly ConsoleLine[]> {
  const run = await guest.run(body, options);
  expect(run.status, JSON.stringify(run.error)).toBe("completed");
  return run.console;
}

/** The text of `console.log(arguments)`. */
async function logged(args: string): Promise<string> {
  const [line] = await lines(`console.log(${args})`);
  return line?.text ?? "nothing was logged";
}

describe("lines", () => {
  test("have levels, sequence numbers and the guest's time", async () => {
    const clock = 1_700_000_000_000;
    const got = await lines(
      "console.debug('a'); console.log('b'); console.info('c'); await new Promise(r => setTimeout(r, 5)); console.warn('d'); console.error('e'); host.log('f')",
      { clock },
    );
    expect(got).toEqual([
      { seq: 0, level: "debug", timeMs: clock, text: "a" },
      { seq: 1, level: "log", timeMs: clock, text: "b" },
      { seq: 2, level: "info", timeMs: clock, text: "c" },
      { seq: 3, level: "warn", timeMs: clock + 5, text: "d" },
      { seq: 4, level: "error", timeMs: clock + 5, text: "e" },
      { seq: 5, level: "log", timeMs: clock + 5, text: "f" },
    ]);
  });

  test("stay when the script fails", async () => {
    const run = await guest.run("console.log('a'); console.error({b: 1}, [1n]); throw new Error('x')");
    expect(run).toMatchObject({
      status: "script_error",
      console: [
        { level: "log", text: "a" },
        { level: "error", text: "{ b: 1 } [ 1n ]" },
      ],
    });
  });

  test("work detached from console", async () => {
    expect(await lines("const {log} = console; [1, 2].forEach(n => log(n))")).toMatchObject([
      { text: "1" },
      { text: "2" },
    ]);
  });
});

describe("formatting", () => {
  test.each([
    ["'text', 'more'", "text more"],
    ["", ""],
    ["1, -0, 1.5, NaN, 10n", "1 -0 1.5 NaN 10n"],
    ["undefined, null, true", "undefined null true"],
    ["Symbol('s')", "Symbol(s)"],
    ["['a', \"it's\", 'say \"x\"']", "[ 'a', \"it's\", 'say \"x\"' ]"],
    ["{a: 1, 'b c': 2, [Symbol('s')]: 3}", "{ a: 1, 'b c': 2, [Symbol(s)]: 3 }"],
    ["{}", "{}"],
    ["[]", "[]"],
    ["[1,,3]", "[ 1, <1 empty item>, 3 ]"],
    ["Object.assign([1], {x: 2})", "[ 1, x: 2 ]"],
    ["{a: {b: {c: {d: {e: {f: 1}}}}}}", "{ a: { b: { c: { d: { e: [Object] } } } } }"],
    ["new Map([['a', {b: 1}]])", "Map(1) { 'a' => { b: 1 } }"],
    ["new Set([1, 'x'])", "Set(2) { 1, 'x' }"],
    ["new Date(0)", "1970-01-01T00:00:00.000Z"],
    ["new Date(NaN)", "Invalid Date"],
    ["/a+/gi", "/a+/gi"],
    ["new Uint8Array([1, 2])", "Uint8Array(2) [ 1, 2 ]"],
    ["new ArrayBuffer(3)", "ArrayBuffer { byteLength: 3 }"],
    ["function f() {}", "[Function: f]"],
    ["() => 1", "[Function (anonymous)]"],
    ["class A {}", "[class A]"],
    ["class A extends Map {}", "[class A extends Map]"],
    ["async () => 1", "[AsyncFunction (anonymous)]"],
    ["new (class Foo { a = 1 })", "Foo { a: 1 }"],
    ["Object.create(null)", "[Object: null prototype] {}"],
    ["new Number(3), new String('x')", "[Number: 3] [String: 'x']"],
    ["Promise.resolve(1)", "Promise {}"],
    ["new WeakMap()", "WeakMap { <items unknown> }"],
    [
      "{get a() { throw 1 }, set b(v) {}, get c() { return 1 }, set c(v) {}}",
      "{ a: [Getter], b: [Setter], c: [Getter/Setter] }",
    ],
    ["new Proxy({a: 1}, {get() { throw 1 }, ownKeys() { throw 1 }})", "{ a: 1 }"],
    ["(() => { const o = {}; o.self = o; return o })()", "{ self: [Circular] }"],
  ])("%s", async (args, text) => {
    expect(await logged(args)).toBe(text);
  });

  test.each([
    ["'%s is %d', 'x', 42", "x is 42"],
    ["'%i %f', 42.9, '1.5'", "42 1.5"],
    ["'%o %O %j', {a: 1}, [2], 'x'", "{ a: 1 } [ 2 ] 'x'"],
    ["'100%% %s', 'sure', 'more'", "100% sure more"],
    ["'%c styled', 'color: red'", " styled"],
    ["'%s'", "%s"],
    ["'%x %s', 1", "%x 1"],
    ["'%d', {valueOf() { throw 1 }}", "NaN"],
    ["'50%', 1", "50% 1"],
  ])("directives: %s", async (args, text) => {
    expect(await logged(args)).toBe(text);
  });

  test("an error shows its stack, cause and own properties", async () => {
    const text = await logged("Object.assign(new TypeError('t', {cause: new Error('root')}), {code: 'E_X'})");
    expect(text).toMatch(
      /^TypeError: t\n {4}at default \(script\.js:2:\d+\) \{\n {2}code: 'E_X',\n {2}\[cause\]: Error: root\n {4}at default \(script\.js:2:\d+\)\n\}$/,
    );
  });

  test("what does not fit on a line takes several", async () => {
    expect(await logged("{name: 'x'.repeat(30), other: 'y'.repeat(30), n: {deep: [1, 2, 3]}}")).toBe(
      `{\n  name: '${"x".repeat(30)}',\n  other: '${"y".repeat(30)}',\n  n: { deep: [ 1, 2, 3 ] }\n}`,
    );
  });

  test("long lists of short elements share lines and end with how many are left", async () => {
    const text = await logged("Array.from({length: 150}, (_, i) => i)");
    expect(text).toMatch(/^\[\n {2}0, 1, 2/);
    expect(text).toMatch(/\.\.\. 50 more items\n\]$/);
    expect(text.split("\n").every((line) => line.length <= 80)).toBe(true);
  });

  test("the host object lists what is granted", async () => {
    const [line] = await lines("console.log(host)", { names: ["echo", "kv.get", "kv.set"] });
    expect(line?.text).toContain("echo: [Function: echo]");
    expect(line?.text).toContain("kv: { get: [Function: get], set: [Function: set] }");
  });

  test("runs no guest code", async () => {
    const run = await guest.run(
      `let ran = 0; const f = () => { ran++ };
       console.log({get a() { f() }, toString: f, toJSON: f, [Symbol.toPrimitive]: f, inspect: f}, new Proxy({}, {get: f, ownKeys: f, getPrototypeOf: f}),
         Object.defineProperty(new Error('e'), 'stack', {get: f}), Object.defineProperty(() => {}, 'name', {get: f}), {get [Symbol.toStringTag]() { f() }},
         Object.defineProperty([1], 0, {get: f, enumerable: true}));
       return ran`,
    );
    expect(run.value).toBe(0);
  });
});

describe("bounds", () => {
  test("output ends with one mark and fails nothing", async () => {
    const run = await guest.run("for (let i = 0; i < 5000; i++) console.log('line ' + i); return 'ok'", {
      limits: { outputBytes: 1000 },
    });
    expect(run).toMatchObject({ status: "completed", value: "ok" });
    const text = run.console.map((line) => line.text);
    expect(text.at(-1)).toMatch(/… output is cut here: it reached 1000 bytes \(limits\.outputBytes\)$/);
    expect(text.filter((line) => line.includes("output is cut"))).toHaveLength(1);
    expect(Buffer.byteLength(text.join("\n"))).toBeLessThanOrEqual(1100);
    expect(run.console.at(-1)?.level).toBe("warn");
  });

  test("empty lines come to an end too", async () => {
    expect(
      (await lines("for (let i = 0; i < 5000; i++) console.log('')", { limits: { outputBytes: 500 } }))
        .length,
    ).toBe(501);
  });

  test("bytes are counted, not characters", async () => {
    const run = await guest.run("console.log('é'.repeat(600))", { limits: { outputBytes: 1000 } });
    expect(Buffer.byteLength(run.console[0]?.text ?? "")).toBeLessThanOrEqual(1000);
    expect(run.console).toHaveLength(1);
  });

  test("with no output allowed only the mark goes out", async () => {
    expect(await lines("console.log('x'); console.log('y')", { limits: { outputBytes: 0 } })).toHaveLength(1);
  });

  test("one huge line is cut, the rest goes on", async () => {
    const got = await lines("console.log('x'.repeat(1e6)); console.log('after')");
    expect(got[0]?.text.length).toBe(32_768);
    expect(got[1]?.text).toBe("after");
  });

  test("a huge structure costs little and shows a part", async () => {
    const got = await lines(
      "const big = Array.from({length: 200}, () => ({a: Array.from({length: 200}, () => ({b: 'x'.repeat(100)}))})); console.log(big)",
    );
    expect(got[0]?.text.length).toBeLessThanOrEqual(17_000);
  });

  test("an array with a huge hole is shown at once", async () => {
    expect(await logged("(() => { const a = []; a.length = 4e9; return a })()")).toBe(
      "[ <4000000000 empty items> ]",
    );
  });

  test("a rope of 256 MiB is cut without being flattened", async () => {
    const run = await guest.run(
      "let s = 'x'; for (let i = 0; i < 28; i++) s += s; console.log(s.length); return 1",
      {
        heapBytes: 40 * 2 ** 20,
      },
    );
    expect(run.value).toBe(1);
  });
});

describe("the other methods", () => {
  test("assert, count, time, group, trace and dir", async () => {
    const got = await lines(
      `console.assert(true, 'no'); console.assert(false); console.assert(0, 'what', {a: 1});
       console.count(); console.count('x'); console.count(); console.countReset(); console.count();
       console.time('t'); await new Promise(r => setTimeout(r, 7)); console.timeLog('t', 'so far'); console.timeEnd('t'); console.timeEnd('t');
       console.group('G'); console.log('in\\ntwo'); console.group(); console.warn('deep'); console.groupEnd(); console.groupEnd(); console.log('out');
       console.dir({a: {b: {c: 1}}}, {depth: 0}); console.clear(); console.dirxml('d'); console.trace('here')`,
    );
    expect(got.map(({ level, text }) => `${level}|${text}`)).toEqual([
      "error|Assertion failed",
      "error|Assertion failed: what { a: 1 }",
      "log|default: 1",
      "log|x: 1",
      "log|default: 2",
      "log|default: 1",
      "log|t: 7ms so far",
      "log|t: 7ms",
      'warn|console.time: there is no timer "t"',
      "log|G",
      "log|  in\n  two",
      "warn|    deep",
      "log|out",
      "log|{ a: [Object] }",
      "log|d",
      expect.stringMatching(/^debug\|Trace: here\n {4}at default \(script\.js:\d+:\d+\)$/),
    ]);
  });

  test("table draws rows and columns", async () => {
    const got = await lines(
      "console.table([{a: 1, b: 'x'}, {a: 2, c: true}]); console.table([1, 'two']); console.table('no table'); console.table([{a: 1, b: 2}], ['b'])",
    );
    expect(got.map(({ text }) => text)).toEqual([
      [
        "┌─────────┬───┬─────┬──────┐",
        "│ (index) │ a │ b   │ c    │",
        "├─────────┼───┼─────┼──────┤",
        "│ 0       │ 1 │ 'x' │      │",
        "│ 1       │ 2 │     │ true │",
        "└─────────┴───┴─────┴──────┘",
      ].join("\n"),
      [
        "┌─────────┬────────┐",
        "│ (index) │ Values │",
        "├─────────┼────────┤",
        "│ 0       │ 1      │",
        "│ 1       │ 'two'  │",
        "└─────────┴────────┘",
      ].join("\n"),
      "no table",
      ["┌─────────┬───┐", "│ (index) │ b │", "├─────────┼───┤", "│ 0       │ 2 │", "└─────────┴───┘"].join(
        "\n",
      ),
    ]);
  });
});
