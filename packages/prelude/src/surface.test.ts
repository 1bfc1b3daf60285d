/** The exact surface that scripts find, compared with the engine's own: every global, and every property of an intrinsic. */
import { beforeAll, describe, expect, test } from "vitest";
import { Engine } from "../testing/engine.js";
import { Guest, preludeScript } from "../testing/guest.js";
import { globalsAdded, globalsRemoved } from "./globals.js";

const hooks = { send: () => {}, interrupt: () => 0, lastFailure: () => "", memoryRefused: () => {} };
const bare = "({activate() {}, start() {}, refuse() {}, deliver() {}, idle() {}, rejection() {}})";

/** Own keys of everything that property names lead to from the global object, by path. */
const survey = `(() => {
  const out = {}; const seen = new Map(); const queue = [['globalThis', globalThis]];
  const text = k => typeof k === 'symbol' ? '@@' + k.description.replace('Symbol.', '') : k;
  while (queue.length) {
    const [path, o] = queue.shift();
    if ((typeof o !== 'object' && typeof o !== 'function') || o === null || seen.has(o)) continue;
    seen.set(o, path);
    const keys = Reflect.ownKeys(o);
    out[path] = keys.map(text).sort();
    for (const k of keys) {
      const d = Reflect.getOwnPropertyDescriptor(o, k);
      if (d && 'value' in d) queue.push([path + '.' + text(k), d.value]);
    }
    queue.push([path + '.__proto__', Object.getPrototypeOf(o)]);
  }
  return JSON.stringify(out);
})()`;

type Survey = Readonly<Record<string, readonly string[]>>;

async function surveyOf(prelude: string): Promise<Survey> {
  const engine = await Engine.create(prelude, hooks);
  return JSON.parse(engine.stringOf(engine.evaluate(survey, "survey.js"))) as Survey; // the script's own
}

let guest: Guest;
let engineOwn: Survey;
let withPrelude: Survey;
beforeAll(async () => {
  guest = await Guest.create();
  engineOwn = await surveyOf(bare);
  withPrelude = await surveyOf(await preludeScript());
});

const difference = (one: readonly string[] = [], other: readonly string[] = []): string[] =>
  one.filter((key) => !other.includes(key));

test("the globals are the engine's with exactly the listed changes", () => {
  expect(difference(withPrelude["globalThis"], engineOwn["globalThis"])).toEqual([...globalsAdded].sort());
  // The engine has no Atomics to begin with.
  expect(difference(engineOwn["globalThis"], withPrelude["globalThis"])).toEqual(
    ["__flowcell_native", ...globalsRemoved.filter((name) => name !== "Atomics")].sort(),
  );
  for (const name of globalsRemoved) expect(withPrelude["globalThis"]).not.toContain(name);
});

test("intrinsics of the language have exactly the listed additions and lack nothing", () => {
  const added: Record<string, string[]> = {};
  const lacking: Record<string, string[]> = {};
  for (const [path, keys] of Object.entries(engineOwn)) {
    if (path === "globalThis" || globalsRemoved.some((name) => path.startsWith(`globalThis.${name}`)))
      continue;
    const now = withPrelude[path];
    if (now === undefined) continue;
    const more = difference(now, keys);
    const less = difference(keys, now);
    if (more.length > 0) added[path] = more;
    if (less.length > 0) lacking[path] = less;
  }
  expect(added).toEqual({
    "globalThis.Array": ["fromAsync"],
    "globalThis.BigInt.prototype": ["toLocaleString"],
    "globalThis.Uint8Array": ["fromBase64", "fromHex"],
    "globalThis.Uint8Array.prototype": ["setFromBase64", "setFromHex", "toBase64", "toHex"],
  });
  expect(lacking).toEqual({});
});

test("what the web has is there with its members", () => {
  const members = (path: string): string[] => [...(withPrelude[`globalThis.${path}`] ?? [])];
  const pinned = Object.fromEntries(
    [
      "AbortController.prototype",
      "AbortSignal",
      "AbortSignal.prototype",
      "Event.prototype",
      "EventTarget.prototype",
      "Headers.prototype",
      "Request.prototype.__proto__",
      "Request.prototype",
      "Response",
      "Response.prototype",
      "TextDecoder.prototype",
      "TextEncoder.prototype",
      "URL",
      "URL.prototype",
      "URLSearchParams.prototype",
      "console",
      "Crypto.prototype",
      "Performance.prototype",
      "HostError.prototype",
    ].map((path) => [path, members(path)]),
  );
  expect(pinned).toMatchInlineSnapshot(`
    {
      "AbortController.prototype": [
        "@@toStringTag",
        "abort",
        "constructor",
        "signal",
      ],
      "AbortSignal": [
        "abort",
        "any",
        "length",
        "name",
        "prototype",
        "timeout",
      ],
      "AbortSignal.prototype": [
        "@@toStringTag",
        "aborted",
        "constructor",
        "onabort",
        "reason",
        "throwIfAborted",
      ],
      "Crypto.prototype": [
        "@@toStringTag",
        "constructor",
        "getRandomValues",
        "randomUUID",
      ],
      "Event.prototype": [
        "@@toStringTag",
        "AT_TARGET",
        "BUBBLING_PHASE",
        "CAPTURING_PHASE",
        "NONE",
        "bubbles",
        "cancelBubble",
        "cancelable",
        "composed",
        "composedPath",
        "constructor",
        "currentTarget",
        "defaultPrevented",
        "eventPhase",
        "initEvent",
        "isTrusted",
        "preventDefault",
        "returnValue",
        "srcElement",
        "stopImmediatePropagation",
        "stopPropagation",
        "target",
        "timeStamp",
        "type",
      ],
      "EventTarget.prototype": [
        "@@toStringTag",
        "addEventListener",
        "constructor",
        "dispatchEvent",
        "removeEventListener",
      ],
      "Headers.prototype": [
        "@@iterator",
        "@@toStringTag",
        "append",
        "constructor",
        "delete",
        "entries",
        "forEach",
        "get",
        "getSetCookie",
        "has",
        "keys",
        "set",
        "values",
      ],
      "HostError.prototype": [
        "constructor",
        "name",
      ],
      "Performance.prototype": [
        "@@toStringTag",
        "constructor",
        "now",
        "timeOrigin",
        "toJSON",
      ],
      "Request.prototype": [
        "@@toStringTag",
        "cache",
        "clone",
        "constructor",
        "credentials",
        "destination",
        "duplex",
        "headers",
        "idempotencyKey",
        "integrity",
        "keepalive",
        "method",
        "mode",
        "redirect",
        "referrer",
        "referrerPolicy",
        "signal",
        "url",
      ],
      "Request.prototype.__proto__": [
        "arrayBuffer",
        "blob",
        "body",
        "bodyUsed",
        "bytes",
        "constructor",
        "formData",
        "json",
        "text",
      ],
      "Response": [
        "error",
        "json",
        "length",
        "name",
        "prototype",
        "redirect",
      ],
      "Response.prototype": [
        "@@toStringTag",
        "clone",
        "constructor",
        "headers",
        "ok",
        "redirected",
        "status",
        "statusText",
        "type",
        "url",
      ],
      "TextDecoder.prototype": [
        "@@toStringTag",
        "constructor",
        "decode",
      ],
      "TextEncoder.prototype": [
        "@@toStringTag",
        "constructor",
        "encode",
        "encodeInto",
      ],
      "URL": [
        "canParse",
        "length",
        "name",
        "parse",
        "prototype",
      ],
      "URL.prototype": [
        "@@toStringTag",
        "constructor",
        "hash",
        "host",
        "hostname",
        "href",
        "origin",
        "password",
        "pathname",
        "port",
        "protocol",
        "search",
        "searchParams",
        "toJSON",
        "toString",
        "username",
      ],
      "URLSearchParams.prototype": [
        "@@iterator",
        "@@toStringTag",
        "append",
        "constructor",
        "delete",
        "entries",
        "forEach",
        "get",
        "getAll",
        "has",
        "keys",
        "set",
        "size",
        "sort",
        "toString",
        "values",
      ],
      "console": [
        "@@toStringTag",
        "assert",
        "clear",
        "count",
        "countReset",
        "debug",
        "dir",
        "dirxml",
        "error",
        "group",
        "groupCollapsed",
        "groupEnd",
        "info",
        "log",
        "table",
        "time",
        "timeEnd",
        "timeLog",
        "trace",
        "warn",
      ],
    }
  `);
});

describe("the shape of the surface", () => {
  test("names, attributes and tags are as the web has them", async () => {
    const run = await guest.run(
      `const d = (k) => { const p = Object.getOwnPropertyDescriptor(globalThis, k); return [p.enumerable, p.writable, p.configurable].map(Number).join('') };
       return [fetch.name, setTimeout.name, URL.name, Headers.name, AbortController.name, HostError.name, DOMException.name, TextEncoder.name,
         d('fetch'), d('setTimeout'), d('URL'), d('Headers'), d('console'), d('Date'), d('crypto'),
         String(new Headers()), String(new AbortController()), String(new Event('x')), String(crypto), String(console), Object.prototype.toString.call(new Response())]`,
    );
    expect(run.value).toEqual([
      "fetch",
      "setTimeout",
      "URL",
      "Headers",
      "AbortController",
      "HostError",
      "DOMException",
      "TextEncoder",
      "111",
      "111",
      "011",
      "011",
      "011",
      "011",
      "111",
      "[object Headers]",
      "[object AbortController]",
      "[object Event]",
      "[object Crypto]",
      "[object console]",
      "[object Response]",
    ]);
  });

  test("code that extends and replaces intrinsics works", async () => {
    const run = await guest.run(
      `class E extends Error { constructor(m) { super(m); this.name = 'E' } }
       function Old() {} Old.prototype = Object.create(Error.prototype); Old.prototype.toString = function () { return 'old' };
       Array.prototype.last = function () { return this[this.length - 1] }; globalThis.setTimeout = () => 'mine'; Math.random = () => 4;
       return [String(new E('m')), String(new Old()), [1, 2].last(), setTimeout(), Math.random()]`,
    );
    expect(run.value).toEqual(["E: m", "old", 2, "mine", 4]);
  });

  test("classes that cannot be constructed say so", async () => {
    const run = await guest.run(
      "return [AbortSignal, Crypto, Performance].map(C => { try { new C(); return 'made' } catch (e) { return e.message } })",
    );
    expect(run.value).toEqual(["Illegal constructor", "Illegal constructor", "Illegal constructor"]);
  });
});

describe("throwers", () => {
  test.each([
    ["require('fs')", /^require\("fs"\) is not available here: use import/],
    ["process.env.API_KEY", /^process\.env\.API_KEY: scripts have no environment/],
    ["process.exit(1)", /^process\.exit is not available here/],
    ["process.argv", /^process\.argv is not available here/],
    ["process.stdout.write('x')", /^process\.stdout is not available here/],
    ["new Intl.DateTimeFormat('de')", /^Intl\.DateTimeFormat is not available here/],
    ["Intl.NumberFormat", /^Intl\.NumberFormat is not available here/],
    ["await fetch('https://x.example')", /^host\.fetch is not granted to this script/],
  ])("%s says what to use instead", async (code, message) => {
    const run = await guest.run(code);
    expect(run.status).toBe("script_error");
    expect(run.error?.message).toMatch(message);
  });

  test("libraries that look where they are find no Node and no browser", async () => {
    const run = await guest.run(
      `return [typeof process === 'object', typeof process !== 'undefined' && process.versions != null && process.versions.node != null, process.env.NODE_ENV,
         typeof module, typeof exports, typeof window, typeof self, typeof global, typeof Buffer, typeof define, process.browser, 'x' in process, typeof Intl, Object.prototype.toString.call(process),
         (() => { const p = typeof process !== 'undefined' ? process : {}; return (p.env || {}).DEBUG })()]`,
    );
    expect(run.value).toEqual([
      false,
      false,
      undefined,
      "undefined",
      "undefined",
      "undefined",
      "undefined",
      "undefined",
      "undefined",
      "undefined",
      undefined,
      false,
      "function",
      "[object Function]",
      undefined,
    ]);
  });

  test("an await of a thrower or of the host object does not take it for a promise", async () => {
    const run = await guest.run("return [typeof await process, typeof await host, typeof await Intl]");
    expect(run.value).toEqual(["function", "object", "function"]);
  });
});

describe("the host object", () => {
  const host = {
    echo: (value: unknown) => value,
    "kv.get": (key: unknown) => `value of ${String(key)}`,
    "kv.list.keys": () => ["a"],
    "tools.my-tool": () => 7,
    fs: () => "fs",
    "fs.read": () => "read",
  };

  test("has what is granted, by dotted names", async () => {
    const run = await guest.run(
      "return [await host.echo(1), await host.kv.get('k'), await host.kv.list.keys(), await host.tools['my-tool'](), await host.fs(), await host.fs.read(), host.kv === host.kv, host.echo === host.echo, host.echo.name]",
      { host },
    );
    expect(run.value).toEqual([1, "value of k", ["a"], 7, "fs", "read", true, true, "echo"]);
  });

  test("lists what is granted and nothing else", async () => {
    const run = await guest.run(
      `return [Object.keys(host), Object.keys(host.kv), Reflect.ownKeys(host).length, 'echo' in host, 'nope' in host, 'toString' in host, Object.getPrototypeOf(host), JSON.stringify(Object.entries(host).map(([k, v]) => [k, typeof v]))]`,
      { host },
    );
    expect(run.value).toEqual([
      ["echo", "kv", "tools", "fs", "log"],
      ["get", "list"],
      5,
      true,
      false,
      false,
      null,
      '[["echo","function"],["kv","object"],["tools","object"],["fs","function"],["log","function"]]',
    ]);
  });

  test.each([
    [
      "host.nope()",
      "host.nope is not granted to this script; granted: echo, kv.get, kv.list.keys, tools.my-tool, fs, fs.read.",
    ],
    [
      "host.ech(1)",
      "host.ech is not granted to this script; granted: echo, kv.get, kv.list.keys, tools.my-tool, fs, fs.read. Did you mean host.echo?",
    ],
    [
      "host.kv.delete('k')",
      "host.kv.delete is not granted to this script; granted: echo, kv.get, kv.list.keys, tools.my-tool, fs, fs.read.",
    ],
    [
      "host.sql.query('x')",
      "host.sql.query is not granted to this script; granted: echo, kv.get, kv.list.keys, tools.my-tool, fs, fs.read.",
    ],
    [
      "new host.nope()",
      "host.nope is not granted to this script; granted: echo, kv.get, kv.list.keys, tools.my-tool, fs, fs.read.",
    ],
  ])("%s is denied by name", async (call, message) => {
    const run = await guest.run(
      `try { await ${call} } catch (e) { return [e.name, e.code, e.message, e.detail.name, e.stack] }`,
      { host },
    );
    const [name, code, text, , stack] = run.value as string[];
    expect([name, code, text]).toEqual(["HostError", "denied", message]);
    expect(stack).toMatch(/^ {4}at default \(script\.js:2:\d+\)$/);
  });

  test("with nothing granted says that", async () => {
    const run = await guest.run("await host.anything()");
    expect(run.error?.message).toBe(
      "host.anything is not granted to this script; it is granted no host function.",
    );
  });

  test("inherited names are never host functions", async () => {
    const run = await guest.run(
      `return ['toString', 'constructor', 'then', 'toJSON', 'valueOf', '__proto__', 'hasOwnProperty', 'catch', Symbol.iterator, Symbol.toPrimitive, Symbol.toStringTag].map(k => typeof host[k])`,
      { host },
    );
    expect(new Set(run.value as string[])).toEqual(new Set(["undefined"]));
  });

  test("cannot be changed", async () => {
    const run = await guest.run(
      `const tries = [() => { host.t = 1 }, () => { delete host.echo }, () => Object.defineProperty(host, 'x', {value: 1}), () => Object.setPrototypeOf(host, {}), () => Object.freeze(host), () => { host.echo.x = 1 }, () => { host.kv.get = 1 }];
       for (const f of tries) try { f() } catch {}
       return [typeof host.echo, Object.keys(host).includes('x'), await host.echo(2), host.echo.x, await host.kv.get('k')]`,
      { host },
    );
    expect(run.value).toEqual(["function", false, 2, undefined, "value of k"]);
  });

  test("finds its way among hundreds of names", async () => {
    const names = Array.from({ length: 500 }, (_, index) => `server${index % 20}.tool${index}`);
    const run = await guest.run(
      "return [Object.keys(host).length, Object.keys(host.server3).length, typeof host.server3.tool483, (() => { try { host.server3.tool484() } catch (e) { return e.message } })()]",
      { names },
    );
    const [count, tools, type, message] = run.value as [number, number, string, string];
    expect([count, tools, type]).toEqual([21, 25, "function"]);
    expect(message).toMatch(/and 488 more\. Did you mean host\.server\d+\.tool\d+\?$/);
  });
});
