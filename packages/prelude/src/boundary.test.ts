/** Errors of the public functions: what their stacks show, what they say, and that a guarded class is a class still. */
import { beforeAll, describe, expect, test } from "vitest";
import { Guest } from "../testing/guest.js";

let guest: Guest;
beforeAll(async () => {
  guest = await Guest.create();
});

const throwing = [
  'new URL("::")',
  'URL("http://h")',
  'new URL("http://h").href = "::"',
  "Reflect.get(URL.prototype, 'href', {})",
  "new URLSearchParams([[1]])",
  "structuredClone(() => {})",
  'atob("!")',
  'btoa("\\u0100")',
  'new Headers([["a b", "c"]])',
  'new Headers().append("a b", "c")',
  "new Headers().forEach()",
  'Headers.prototype.get.call({}, "a")',
  'new TextDecoder("klingon")',
  'new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([255]))',
  "setTimeout(1)",
  "setTimeout(() => {}, Symbol())",
  "setInterval(() => {}, 2 ** 31)",
  "queueMicrotask()",
  "new Event()",
  "new CustomEvent()",
  "new AbortSignal()",
  "AbortSignal.timeout(-1)",
  "AbortSignal.any([{}])",
  "AbortSignal.abort().throwIfAborted()",
  'new Request("x")',
  'new Request("http://h", { body: "b" })',
  "new Response(null, { status: 9 })",
  'Response.redirect("::")',
  "Response.json(undefined)",
  'new Response("{").json()',
  "Response.prototype.text.call({})",
  "new Response(null).blob()",
  "crypto.getRandomValues({})",
  "new Crypto()",
  "new Performance()",
  'Uint8Array.fromBase64("!")',
  'Uint8Array.fromHex("x")',
  'new Uint8Array(2).setFromHex("x")',
  '(1).toLocaleString("de")',
  "Number.prototype.toLocaleString.call({})",
  'new Date(0).toLocaleDateString("xx-invalid-locale-name")',
  '"a".localeCompare("b", "de")',
  '[1].toLocaleString("de")',
  "new Date(Symbol())",
  "new Proxy(1, {})",
  "Proxy({}, {})",
  "Proxy.revocable(1, {})",
  'require("fs")',
  "process.cwd()",
  "Intl.NumberFormat()",
  'fetch("http://h")',
  'throw0(new DOMException("m", "AbortError"))',
  "DOMException()",
  'throw0(new HostError("m", { code: "x" }))',
  'eval("1")',
  'new Function("1")',
];

describe("a stack that a script reads shows its own lines only", () => {
  test.each(throwing)("%s", async (expression) => {
    const run = await guest.run(
      `const throw0 = e => { throw e };\nfunction mine() { return (${expression}) }\ntry { await mine() } catch (e) { return [e instanceof Error, e.stack, Object.getOwnPropertyDescriptor(e, 'stack')] }`,
      { codeGeneration: false },
    );
    const [isError, stack, descriptor] = run.value as [boolean, string, PropertyDescriptor];
    expect(isError).toBe(true);
    expect(stack).toMatch(
      /^ {4}at (?:<input>:1:2\n {4}at )?(mine|throw0|get|call|<anonymous>|default) \((script\.js:\d+:\d+|native)\)/,
    );
    expect(stack).toMatch(/at mine \(script\.js:\d+:\d+\)/);
    expect(stack).not.toContain("prelude");
    expect(descriptor).toMatchObject({ writable: true, enumerable: false, configurable: true });
  });

  test("also in an error of its own that passes through the runtime", async () => {
    const run = await guest.run(
      "try { new Headers([['a', 'b']]).forEach(function mine() { throw new RangeError('own') }) } catch (e) { return e.stack }",
    );
    expect(run.value).toMatch(/^ {4}at mine \(script\.js:\d+:\d+\)\n {4}at default \(script\.js:\d+:\d+\)$/);
  });

  test("but for what it made of it: a frozen error, an accessor and a text of its own stay", async () => {
    const run = await guest.run(
      `const through = error => { try { new Headers([['a', 'b']]).forEach(() => { throw error }) } catch (e) { return e } };
       const frozen = Object.freeze(new Error('f')); const own = new Error('o'); own.stack = 'mine'; let reads = 0;
       const accessor = Object.defineProperty(new Error('a'), 'stack', {get() { reads++; return 'at x (prelude.js:1:1)' }});
       const trapped = new Proxy(new Error('p'), {getOwnPropertyDescriptor() { reads++ }, get() { reads++ }});
       return [through(frozen) === frozen, through(own).stack, through(accessor) === accessor, through(trapped) === trapped, reads, through(null), through(7)]`,
    );
    expect(run.value).toEqual([true, "mine", true, true, 0, null, 7]);
  });

  test("when every intrinsic was replaced", async () => {
    const run = await guest.run(
      `Reflect.apply = Reflect.construct = Reflect.defineProperty = Object.defineProperty = Error.isError = () => { throw 'mine' };
       String.prototype.includes = String.prototype.slice = String.prototype.indexOf = () => { throw 'mine' };
       Object.prototype.get = Object.prototype.set = Object.prototype.value = 1;
       try { setTimeout(1) } catch (e) { return e.stack }`,
    );
    expect(run.value).toMatch(/^ {4}at default \(script\.js:\d+:\d+\)$/);
  });
});

describe("an error names the function and the value", () => {
  test.each([
    ['new URL("::")', 'TypeError: URL: "::" is not an absolute URL (invalid scheme)'],
    [
      'new URL("http://[", "http://h")',
      'TypeError: URL: "http://[" with the base "http://h" is not a URL (invalid host)',
    ],
    ['new URL("http://h").href = "::"', 'TypeError: URL.href: "::" is not an absolute URL (invalid scheme)'],
    [
      'new TextDecoder("klingon")',
      'RangeError: TextDecoder: "klingon" is no encoding that is known here; there are utf-8, utf-16le, utf-16be and latin1',
    ],
    ["new Event()", "TypeError: Event: the type of the event is missing"],
    ["new CustomEvent()", "TypeError: CustomEvent: the type of the event is missing"],
    ['Response.redirect("::")', 'TypeError: Response.redirect: "::" is not an absolute URL'],
    ['URL("http://h")', "TypeError: Constructor URL requires 'new'"],
  ])("%s", async (expression, expected) => {
    const run = await guest.run(`try { ${expression} } catch (e) { return e.name + ': ' + e.message }`);
    expect(run.value).toBe(expected);
  });

  test("an Event of type undefined has one, as the standard converts it", async () => {
    expect((await guest.run("return new Event(undefined).type")).value).toBe("undefined");
  });
});

test("a guarded class can be derived from and looks as the web's", async () => {
  const run = await guest.run(
    `class Mine extends Headers { twice(n, v) { this.append(n, v); this.append(n, v); return this } }
     class Bus extends EventTarget {} const bus = new Bus(); let heard; bus.addEventListener('x', e => { heard = e });
     class Note extends CustomEvent {} bus.dispatchEvent(new Note('x', {detail: 5}));
     const own = Object.getOwnPropertyDescriptor(URL.prototype, 'href');
     return [new Mine().twice('a', 'b').get('a'), new Mine() instanceof Headers, heard.detail, heard instanceof Event,
       Object.getPrototypeOf(CustomEvent) === Event, Object.getPrototypeOf(AbortSignal) === EventTarget,
       Headers.prototype.constructor === Headers, Headers.prototype[Symbol.iterator] === Headers.prototype.entries,
       Headers.name, Headers.length, URL.length, Headers.prototype.append.name, Headers.prototype.append.length,
       own.get.name, own.set.name, typeof URL.canParse, AbortSignal.timeout.name, 'prototype' in Headers.prototype.append,
       URL.parse('http://h') instanceof URL, new URL('http://h').constructor === URL, AbortSignal.abort() instanceof AbortSignal]`,
  );
  expect(run.value).toEqual([
    "b, b",
    true,
    5,
    true,
    true,
    true,
    true,
    true,
    "Headers",
    1,
    1,
    "append",
    2,
    expect.stringMatching(/href$/),
    expect.stringMatching(/href$/),
    "function",
    "timeout",
    false,
    true,
    true,
    true,
  ]);
});
