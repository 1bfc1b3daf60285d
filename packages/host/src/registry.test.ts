// Which rows the registry takes.
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod/mini";
import {
  createRegistry,
  defineHostFunction,
  type HostFunctionDefinition,
  HostFunctionError,
} from "./index.js";

const whole: HostFunctionDefinition<readonly [string], number> = {
  name: "kv.get",
  doc: "Reads a value.",
  effect: "read",
  grant: "kv",
  input: z.tuple([z.string()]),
  handler: ([key]) => key.length,
};

function define(change: object): () => void {
  return () => {
    defineHostFunction({ ...whole, ...change });
  };
}

describe("defineHostFunction", () => {
  test("takes a whole row", () => {
    expect(defineHostFunction(whole)).toMatchObject({
      name: "kv.get",
      effect: "read",
      grant: "kv",
      limits: {},
    });
  });

  test("gives the handler the types of the schema", () => {
    defineHostFunction({
      name: "kv.get",
      doc: "Reads a value.",
      effect: "read",
      grant: "kv",
      input: z.tuple([z.string(), z.optional(z.number())]),
      handler: ([key, n]) => {
        expectTypeOf(key).toEqualTypeOf<string>();
        expectTypeOf(n).toEqualTypeOf<number | undefined>();
      },
    });
  });

  test.each([
    "then",
    "a.then",
    "constructor",
    "kv.__proto__",
    "toString",
    "a.hasOwnProperty",
    "prototype",
    "x.toJSON",
  ])("refuses the name %j, which JavaScript looks up by itself", (name) => {
    expect(define({ name })).toThrow(HostFunctionError);
  });

  test.each([
    "",
    ".",
    "a.",
    "a b",
    "1a",
    "a-b",
    "a..b",
    "a.b.c.d.e",
    "x".repeat(200),
    "log",
    "log.x",
    "näme",
  ])("refuses the name %j, which cannot be typed after `host.`", (name) => {
    expect(define({ name })).toThrow(HostFunctionError);
  });

  test.each([
    ["an unknown key", { purpose: "x" }, 'unknown key "purpose"'],
    ["an unknown effect", { effect: "write" }, "effects are local, wait, read, keyed, once"],
    ["an unknown limit", { limits: { timeoutMs: 1 } }, 'unknown limit "timeoutMs"'],
    ["a limit of nothing", { limits: { wallMs: 0 } }, "no positive whole number"],
    ["no schema", { input: undefined }, "needs an input schema"],
    ["an output that is no schema", { output: {} }, "output that is no schema"],
    ["no doc", { doc: "" }, "needs a doc"],
    ["no grant", { grant: undefined }, "needs a grant"],
    ["no handler", { handler: undefined }, "needs a handler"],
    ["a local effect without its operation", { effect: "local" }, "needs local"],
    ["an operation without the local effect", { local: () => ({ kind: "kv.get", key: "a" }) }, "needs local"],
    [
      "a handler that nothing would call",
      { effect: "local", local: () => ({ kind: "kv.get", key: "a" }) },
      "which nothing would call",
    ],
    ["a wait that is none", { wait: () => ({ kind: "time", waitMs: 1 }) }, 'effect is not "wait"'],
    [
      "a recovery of what may be repeated",
      { recover: () => ({ state: "unknown" }) },
      "has prepare or recover",
    ],
    ["a recover that is no function", { effect: "once", recover: 1 }, "recover that is no function"],
  ])("refuses a row with %s", (_what, change, text) => {
    expect(define(change)).toThrow(text);
  });
});

describe("createRegistry", () => {
  const named = (name: string) => defineHostFunction({ ...whole, name });

  test("lists every name, sorted", () => {
    expect(createRegistry([named("b"), named("a.c"), named("a.b")]).names).toEqual(["a.b", "a.c", "b"]);
  });

  test("refuses a name that is there twice", () => {
    expect(() => createRegistry([named("a"), named("a")])).toThrow('"a" is defined twice');
  });

  test("refuses a function inside a function", () => {
    expect(() => createRegistry([named("a.b"), named("a")])).toThrow('"a.b" cannot be inside "a"');
    expect(() => createRegistry([named("a.b"), named("a.bc")])).not.toThrow();
  });
});
