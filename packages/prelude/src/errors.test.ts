/** What a script threw, as it is reported: name, message, lines, code, cause, members; bounded, and without running guest code. */

import { parseFinished, untrusted } from "@flowcell/protocol";
import { beforeAll, describe, expect, test } from "vitest";
import { Guest, type RunResult } from "../testing/guest.js";

let guest: Guest;
beforeAll(async () => {
  guest = await Guest.create();
});

/** Also parses the header as the parent does, which refuses anything beyond the protocol's bounds. */
async function run(body: string): Promise<RunResult> {
  const result = await guest.run(body);
  const header = result.frames.at(-1)?.text.split("\n")[0] ?? "";
  expect(() => parseFinished(untrusted(header))).not.toThrow();
  return result;
}

describe("errors", () => {
  test("carry name, message and the script's lines", async () => {
    const { error } = await run("const a = 1;\n\n\nnull.foo;");
    expect(error).toEqual({
      name: "TypeError",
      message: "cannot read property 'foo' of null",
      stack: expect.stringMatching(/^ {4}at default \(script\.js:5:\d+\)$/),
    });
  });

  test("of the script's own classes keep their names", async () => {
    const { error } = await run(
      "class E extends Error { constructor(m) { super(m); this.name = 'E'; this.code = 17 } } throw new E('mine')",
    );
    expect(error).toMatchObject({ name: "E", message: "mine", code: "17" });
  });

  test("a class name that is an accessor falls back to the constructor's", async () => {
    const { error } = await run(
      "class Special extends Error { get name() { return 'computed' } } throw new Special('mine')",
    );
    expect(error).toMatchObject({ name: "Special", message: "mine" });
  });

  test("cause and members go along", async () => {
    const { error } = await run(
      "throw new AggregateError([new TypeError('a'), 'text', null], 'many', {cause: new Error('root', {cause: {code: 5}})})",
    );
    expect(error).toMatchObject({
      name: "AggregateError",
      message: "many",
      cause: { message: "root", cause: { name: "Error", message: "{ code: 5 }" } },
      errors: [{ name: "TypeError", message: "a" }, { message: "'text'" }, { message: "null" }],
    });
  });

  test("a missing name is told as other engines tell it", async () => {
    expect((await run("nope()")).error).toMatchObject({
      name: "ReferenceError",
      message: "nope is not defined",
    });
  });

  test.each([
    ["Buffer.from('x')", /^Buffer is not defined: use Uint8Array/],
    ["window.x", /^window is not defined: there is no browser page here$/],
    ["module.exports = 1", /^module is not defined: scripts are ES modules/],
    ["new WebSocket('x')", /^WebSocket is not defined: it does not exist here$/],
    ["toString_", /^toString_ is not defined$/],
    ["hasOwnProperty_", /^hasOwnProperty_ is not defined$/],
  ])("%s says what to use instead", async (body, message) => {
    expect((await run(body)).error?.message).toMatch(message);
  });

  test("a DOMException is one", async () => {
    const { error } = await run("throw new DOMException('stop', 'AbortError')");
    expect(error).toMatchObject({ name: "AbortError", message: "stop" });
    expect(error?.stack).toContain("script.js");
  });

  test("a stack that the script wrote is kept as text", async () => {
    const { error } = await run("const e = new Error('x'); e.stack = 'Error: x\\n    at somewhere'; throw e");
    expect(error?.stack).toBe("Error: x\n    at somewhere");
  });
});

describe("what is no error", () => {
  test.each([
    ["{code: 42, message: 'm'}", "Uncaught { code: 42, message: 'm' }"],
    ["null", "Uncaught null"],
    ["undefined", "Uncaught undefined"],
    ["'boom'", "Uncaught 'boom'"],
    ["42n", "Uncaught 42n"],
    ["Symbol('s')", "Uncaught Symbol(s)"],
    ["[1, [2]]", "Uncaught [ 1, [ 2 ] ]"],
    ["() => 1", "Uncaught [Function (anonymous)]"],
    ["{message: 'm', stack: 's'}", "Uncaught { message: 'm', stack: 's' }"],
  ])("%s is described", async (thrown, message) => {
    const result = await run(`throw ${thrown}`);
    expect(result).toMatchObject({ status: "script_error", error: { name: "Error", message, stack: "" } });
  });

  test("an error without a message is a failure", async () => {
    expect(await run("throw new Error('')")).toMatchObject({
      status: "script_error",
      error: { message: "" },
    });
  });

  test("errors without a prototype or with a foreign one are read", async () => {
    expect((await run("throw Object.setPrototypeOf(new Error('bare'), null)")).error).toMatchObject({
      name: "Error",
      message: "bare",
    });
  });
});

describe("bounds", () => {
  test("a huge message is cut with a mark", async () => {
    const { error } = await run("throw new Error('x'.repeat(5e6))");
    expect(error?.message).toHaveLength(8192);
    expect(error?.message.endsWith("…")).toBe(true);
  });

  test("a cut never splits a surrogate pair", async () => {
    const { error } = await run("throw new Error('x' + '😀'.repeat(5000))");
    expect(error?.message).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
  });

  test("a chain of causes ends at its bound", async () => {
    const { error } = await run(
      "let e = new Error('0'); for (let i = 1; i < 50; i++) e = new Error(String(i), {cause: e}); throw e",
    );
    let depth = 0;
    for (let at = error; at !== undefined; at = at.cause) depth++;
    expect(depth).toBe(8);
  });

  test("a cause that is its own cause ends", async () => {
    expect((await run("const e = new Error('x'); e.cause = e; throw e")).error).toMatchObject({
      message: "x",
    });
  });

  test("members end at their bound", async () => {
    const { error } = await run(
      "throw new AggregateError(Array.from({length: 100}, (_, i) => new Error(i)))",
    );
    expect(error?.errors).toHaveLength(32);
  });

  test("a tree of huge errors stays within the frame", async () => {
    const result = await run(
      `const leaf = () => new Error('\\u0001'.repeat(20000));
       const tree = (n) => n === 0 ? leaf() : new AggregateError(Array.from({length: 32}, () => tree(n - 1)), '\\u0001'.repeat(20000), {cause: leaf()});
       throw tree(2)`,
    );
    expect(Buffer.byteLength(result.frames.at(-1)?.text ?? "")).toBeLessThan(256 * 1024);
  });

  test("a huge description of an object is cut", async () => {
    const { error } = await run(
      "throw Array.from({length: 1000}, () => ({a: 'x'.repeat(500), b: {c: [1, 2, 3]}}))",
    );
    expect(error?.message.length).toBeLessThanOrEqual(8192);
  });
});
