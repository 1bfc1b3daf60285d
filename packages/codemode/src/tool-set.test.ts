// What a program may pass as tools, and what is refused with which words.
import { describe, expect, test } from "vitest";
import { toolSchema } from "./schema.js";
import { CodemodeOptionsError, makeToolSet } from "./tool-set.js";
import type { ToolSet } from "./tools.js";

const context = { signal: new AbortController().signal, idempotencyKey: "k", position: 0, runId: "run_1" };
const make = (tools: unknown): ToolSet => makeToolSet(tools, toolSchema);
const named = (set: ToolSet): string[] => set.tools.map(({ namespace, name }) => `${namespace}.${name}`);
const refusal = (tools: unknown): string => {
  try {
    make(tools);
  } catch (error) {
    if (error instanceof CodemodeOptionsError) return error.message;
    throw error;
  }
  return "";
};

describe("tools", () => {
  test("a function takes its arguments as they come, and keeps what it belongs to", () => {
    const owner = {
      factor: (): number => 3,
      times(this: { factor: () => number }, value: number): number {
        return this.factor() * value;
      },
    };
    const set = make({ math: owner });
    expect(named(set)).toEqual(["math.factor", "math.times"]);
    expect(set.get("math", "times")?.call([5], context)).toBe(15);
    expect(set.get("math", "times")?.input).toBeNull();
  });

  test("a definition takes one input and is told of the call", () => {
    const set = make({
      find: {
        description: "finds",
        inputSchema: { type: "object" },
        execute: (input: unknown, told: unknown) => [input, told],
      },
    });
    const tool = set.get("tools", "find");
    expect(tool?.call([{ q: 1 }], context)).toEqual([{ q: 1 }, context]);
    expect(tool).toMatchObject({ description: "finds", effect: "once", needsApproval: false });
  });

  test("an object of functions and definitions is a namespace, also with a function called execute", () => {
    const set = make({ db: { execute: () => 1, run: { description: "r", execute: () => 2 } } });
    expect(named(set)).toEqual(["db.execute", "db.run"]);
  });

  test("names become identifiers", () => {
    const set = make({
      "my-tool.v2": () => 1,
      "9lives": () => 1,
      delete: () => 1,
      inspect: () => 1,
      $: () => 1,
    });
    expect(named(set).sort()).toEqual(
      ["tools.$", "tools._9lives", "tools.delete_", "tools.inspect_", "tools.my_tool_v2"].sort(),
    );
    expect(set.get("tools", "my_tool_v2")?.originalName).toBe("my-tool.v2");
  });

  test("only own properties are tools", () => {
    const inherited: object = Object.create({ hidden: () => 1 });
    expect(named(make(Object.assign(inherited, { seen: () => 1 })))).toEqual(["tools.seen"]);
    const set = make({ seen: () => 1 });
    for (const name of ["constructor", "then", "__proto__", "toString"])
      expect(set.get("tools", name)).toBeUndefined();
  });
});

describe("refusals", () => {
  test("of names that would be the same name both originals", () => {
    expect(refusal({ "a-b": () => 1, "a.b": () => 1 })).toMatch(/"a-b".*"a_b"|"a\.b".*"a-b"/);
    expect(refusal({ s: { "a-b": () => 1, a_b: () => 1 } })).toBe(
      'tools "s.a-b" and "s.a_b" would both be s.a_b in a script; rename one',
    );
    expect(refusal({ "a-b": () => 1, a_b: { f: () => 1 } })).toMatch(/tool "a-b"/);
  });

  test("of names that every object has, whichever way they come", () => {
    for (const name of ["constructor", "then", "toString", "toJSON", "prototype"])
      expect(refusal({ [name]: () => 1 })).toMatch(/looks up on every object/);
    expect(refusal({ ["__proto__"]: () => 1 })).toMatch(/looks up on every object/);
  });

  test("of namespaces that would hide what scripts have", () => {
    expect(refusal({ fetch: { get: () => 1 } })).toMatch(/name that scripts have already/);
    expect(refusal({ tools: { get: () => 1 } })).toMatch(/name that scripts have already/);
  });

  test("of what is no name at all", () => {
    expect(refusal({ "": () => 1 })).toMatch(/no letter or digit/);
    expect(refusal({ "…": () => 1 })).toMatch(/no letter or digit/);
    expect(refusal({ ["x".repeat(65)]: () => 1 })).toMatch(/longer than 64/);
  });

  test("of other libraries' words suggest this one's", () => {
    expect(refusal({ f: { description: "d", parameters: {}, execute: () => 1 } })).toMatch(
      /did you mean inputSchema/,
    );
    expect(refusal({ f: { description: "d", inputSchem: {}, execute: () => 1 } })).toMatch(
      /did you mean inputSchema/,
    );
  });

  test("of what is no tool says what a tool is", () => {
    for (const value of [null, 1, "x", [], {}]) expect(refusal({ f: value })).toMatch(/tool "f" /);
    expect(refusal({ n: { f: 1 } })).toMatch(/tool "n.f" is of type number/);
    expect(refusal({ f: { inputSchema: {}, execute: 1 } })).toMatch(/needs execute/);
    expect(refusal({ f: { description: "d", execute: () => 1, effect: "twice" } })).toMatch(
      /read, keyed, once/,
    );
    expect(refusal([])).toMatch(/must be an object/);
  });
});
