/** Schemas of every kind that tools come with: what they accept, what they say, and what a model is shown of them. */

import { asSchema, jsonSchema, zodSchema } from "ai";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { serverSchema, toolSchema } from "./schema.js";
import type { SchemaVerdict, ToolSchema } from "./tools.js";

const verdictOf = async (schema: ToolSchema, value: unknown): Promise<SchemaVerdict> =>
  await schema.validate(value);
const refused = (message: string, path: readonly (string | number)[] = []) => ({
  ok: false,
  message: expect.stringContaining(message),
  path,
});

const json = {
  type: "object",
  properties: { n: { type: "integer" }, to: { type: "string", format: "email" } },
  required: ["n"],
};

describe("JSON Schema", () => {
  const schema = toolSchema(json, "inputSchema");

  test("accepts what it describes and says where something else is wrong", async () => {
    expect(await verdictOf(schema, { n: 1 })).toEqual({ ok: true, value: { n: 1 } });
    expect(await verdictOf(schema, { n: "1" })).toEqual(refused("input.n must be an integer", ["n"]));
    expect(await verdictOf(schema, { n: 1, to: "nobody" })).toEqual(refused("email", ["to"]));
    expect(schema.json).toEqual(json);
  });

  test("no input is an empty one where that is allowed, and only for inputs", async () => {
    expect(await verdictOf(schema, undefined)).toEqual(refused("input"));
    const optional = { type: "object", properties: { a: { type: "string" } } };
    expect(await verdictOf(toolSchema(optional, "inputSchema"), undefined)).toEqual({ ok: true, value: {} });
    expect(await verdictOf(toolSchema(optional, "outputSchema"), undefined)).toEqual(refused("output"));
  });

  test("true and false as parts work", async () => {
    const schema = toolSchema({ properties: { a: false } }, "inputSchema");
    expect(await verdictOf(schema, { b: 1 })).toMatchObject({ ok: true });
    expect(await verdictOf(schema, { a: 1 })).toEqual(refused("must not be there", ["a"]));
  });
});

describe("zod", () => {
  const schema = toolSchema(
    z.object({ n: z.number().default(3), s: z.string().transform((text) => text.length) }),
    "inputSchema",
  );

  test("gives the tool what it makes of an input: defaults and transformations", async () => {
    expect(await verdictOf(schema, { s: "four" })).toEqual({ ok: true, value: { n: 3, s: 4 } });
  });

  test("says every place that is wrong", async () => {
    const verdict = await verdictOf(schema, { n: "x" });
    expect(verdict).toEqual(refused("input.n: ", ["n"]));
    expect(verdict).toEqual(refused("; input.s: ", ["n"]));
  });

  test("shows inputs before the transformation and outputs after it", () => {
    const shape = z.object({ a: z.string().default("x"), b: z.string().transform(Number).pipe(z.number()) });
    expect(toolSchema(shape, "inputSchema").json).toMatchObject({
      properties: { b: { type: "string" } },
      required: ["b"],
    });
    expect(toolSchema(shape, "outputSchema").json).toMatchObject({
      properties: { b: { type: "number" } },
      required: ["a", "b"],
    });
  });

  test("values that cross as they are have their names", async () => {
    const schema = toolSchema(
      z.object({ d: z.date(), m: z.map(z.string(), z.number()), n: z.bigint() }),
      "inputSchema",
    );
    expect(schema.json).toMatchObject({
      properties: {
        d: { "x-type": "Date" },
        m: { "x-type": "Map<unknown, unknown>" },
        n: { "x-type": "bigint" },
      },
    });
    const value = { d: new Date(0), m: new Map([["a", 1]]), n: 2n };
    expect(await verdictOf(schema, value)).toEqual({ ok: true, value });
  });

  test("schemas that refer to themselves are shown", () => {
    const node = z.object({
      value: z.number(),
      get next() {
        return node.optional();
      },
    });
    expect(toolSchema(node, "inputSchema").json).toMatchObject({ properties: { next: { $ref: "#" } } });
  });

  test("no input is an empty one where that is allowed", async () => {
    expect(
      await verdictOf(toolSchema(z.object({ a: z.string().optional() }), "inputSchema"), undefined),
    ).toEqual({
      ok: true,
      value: {},
    });
    expect(await verdictOf(toolSchema(z.undefined(), "inputSchema"), undefined)).toEqual({
      ok: true,
      value: undefined,
    });
    expect((await verdictOf(schema, undefined)).ok).toBe(false);
  });
});

describe("any Standard Schema", () => {
  const standard = (validate: (value: unknown) => unknown, more: object = {}) => ({
    "~standard": { version: 1, vendor: "somebody", validate, ...more },
  });

  test("is used through its interface, also asynchronously, with paths of both kinds", async () => {
    const schema = toolSchema(
      standard(async (value) =>
        value === 1
          ? { value: "one" }
          : { issues: [{ message: "no", path: ["a", { key: 0 }, { key: Symbol("s") }] }] },
      ),
      "inputSchema",
    );
    expect(schema.json).toBeNull();
    expect(await verdictOf(schema, 1)).toEqual({ ok: true, value: "one" });
    expect(await verdictOf(schema, 2)).toEqual(refused("input.a[0]", ["a", 0, "Symbol(s)"]));
  });

  test("shows what its library says of it", () => {
    const convert = (options: object) => ({ ...options, type: "string", nullable: true });
    const schema = toolSchema(
      standard((value) => ({ value }), { jsonSchema: { input: convert, output: convert } }),
      "inputSchema",
    );
    expect(schema.json).toEqual({ type: ["string", "null"] });
  });

  test("one that throws or breaks its contract refuses, and tells nothing of the host", async () => {
    const broken = [
      () => {
        throw new Error("/home/me/secret");
      },
      () => Promise.reject(new Error("/home/me/secret")),
      () => undefined,
      () => ({}),
      () => ({ issues: "none" }),
      () => ({ issues: [null] }),
    ];
    for (const validate of broken) {
      const verdict = await verdictOf(toolSchema(standard(validate), "inputSchema"), 1);
      expect(verdict.ok).toBe(false);
      expect(JSON.stringify(verdict)).not.toContain("secret");
    }
  });

  test("a long list of issues is cut", async () => {
    const issues = Array.from({ length: 1_000 }, () => ({ message: "x".repeat(1_000), path: [] }));
    const verdict = await verdictOf(
      toolSchema(
        standard(() => ({ issues })),
        "inputSchema",
      ),
      1,
    );
    expect(verdict.ok ? 0 : verdict.message.length).toBeLessThanOrEqual(2_000);
  });
});

describe("schemas of the AI SDK", () => {
  test("made from JSON Schema check by it", async () => {
    const schema = toolSchema(
      jsonSchema({ type: "object", properties: { n: { type: "number" } }, required: ["n"] }),
      "inputSchema",
    );
    expect(schema.json).toMatchObject({ required: ["n"] });
    expect(await verdictOf(schema, {})).toEqual(refused("input must have the property"));
  });

  test("made from JSON Schema that comes later check by it when it is there", async () => {
    const late = jsonSchema(Promise.resolve({ type: "object", required: ["n"] } as const));
    const schema = toolSchema(late, "inputSchema");
    expect(schema.json).toBeNull();
    expect(await verdictOf(schema, {})).toEqual(refused("input must have"));
    expect(await verdictOf(schema, { n: 1 })).toMatchObject({ ok: true });
    const bad = toolSchema(jsonSchema(Promise.resolve({ type: "nothing" as "object" })), "inputSchema");
    expect(await verdictOf(bad, {})).toEqual(refused("could not be checked"));
  });

  test("made from zod, or with a check of their own, check by that", async () => {
    for (const given of [
      zodSchema(z.object({ n: z.number().default(2) })),
      asSchema(z.object({ n: z.number().default(2) })),
    ]) {
      const schema = toolSchema(given, "inputSchema");
      expect(schema.json).toMatchObject({ type: "object" });
      expect(await verdictOf(schema, {})).toEqual({ ok: true, value: { n: 2 } });
      expect(await verdictOf(schema, undefined)).toEqual({ ok: true, value: { n: 2 } });
      expect(await verdictOf(schema, { n: "x" })).toEqual(refused("input.n: ", ["n"]));
    }
    const own = jsonSchema({}, { validate: () => ({ success: false, error: new Error("not today") }) });
    expect(await verdictOf(toolSchema(own, "inputSchema"), {})).toEqual(refused("not today"));
  });
});

describe("what is no schema", () => {
  test.each<[unknown, string]>([
    [5, "neither a Standard Schema"],
    [null, "neither"],
    [[], "neither"],
    [() => z.string(), "is a function"],
    [{ name: z.string() }, 'is an object of schemas ("name", …); put z.object() around it'],
    [{ type: "object", requried: ["a"] }, "did you mean required"],
    [{ $ref: "https://example.com/schema.json" }, "nothing else is opened"],
  ])("%o is refused", (given, message) => {
    expect(() => toolSchema(given, "inputSchema")).toThrow(message);
  });
});

describe("a server's schema", () => {
  test("is kept, whatever is wrong with it, and its tool with it", async () => {
    for (const given of [undefined, null, "x", { type: "objekt" }, { $ref: "file:///etc/passwd" }]) {
      const { schema, warnings } = serverSchema(given, "input");
      expect(warnings.length).toBeGreaterThan(0);
      expect(await verdictOf(schema, { any: 1 })).toMatchObject({ ok: true });
    }
  });

  test("checks what can be checked", async () => {
    const { schema, warnings } = serverSchema({ ...json, allOf: [{ $ref: "other.json" }] }, "input");
    expect(warnings).toEqual([expect.stringContaining("other.json")]);
    expect(await verdictOf(schema, { n: "1" })).toEqual(refused("input.n must be", ["n"]));
    expect(await verdictOf(schema, { n: 1, to: "nobody" })).toMatchObject({ ok: true });
  });

  test("passes through where a program's schema is asked for", () => {
    const { schema } = serverSchema(json, "input");
    expect(toolSchema(schema, "inputSchema")).toBe(schema);
  });
});
