/** JSON Schema as TypeScript: the text for examples, and that what passes a schema is of its type, asked of the compiler. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonValue } from "./json-document.js";
import { compileSchema } from "./json-schema.js";
import type { JsonSchemaObject } from "./schema-check.js";
import { schemaDeclarations, schemaType, schemaTypeParts } from "./schema-types.js";
import { checkFlow } from "./testing/type-check.js";

describe("expressions", () => {
  test.each<[JsonSchemaObject, string]>([
    [{}, "unknown"],
    [{ title: "a" }, "unknown"],
    [{ type: "string", format: "date-time", maxLength: 3 }, "string"],
    [{ type: "integer" }, "number"],
    [{ type: ["string", "null"] }, "string | null"],
    [{ type: ["integer", "number"] }, "number"],
    [{ const: "a" }, '"a"'],
    [{ const: null }, "null"],
    [{ enum: ["a", 1, true, null, "a"] }, '"a" | 1 | true | null'],
    [{ enum: [{ a: [1, "x"] }] }, '{ a: [1, "x"] }'],
    [{ const: "\u2028</script>" }, '"\\u2028</script>"'],
    [{ type: "array" }, "unknown[]"],
    [{ type: "array", items: { type: ["string", "null"] } }, "(string | null)[]"],
    [{ items: { type: "string" } }, "string[]"],
    [{ type: "array", items: false }, "never[]"],
    [
      { type: "array", prefixItems: [{ type: "string" }, { enum: [1, 2] }], minItems: 1, items: false },
      "[string, (1 | 2)?]",
    ],
    [{ prefixItems: [{ type: "string" }], minItems: 1 }, "[string, ...unknown[]]"],
    [{ anyOf: [{ type: "string" }, { type: "null" }, { type: "string" }] }, "string | null"],
    [{ oneOf: [{ type: "string" }, true] }, "unknown"],
    [{ oneOf: [{ type: "string" }, false] }, "string"],
    [{ allOf: [{ type: "string" }, { minLength: 1 }] }, "string"],
    [{ allOf: [{ anyOf: [{ const: 1 }, { const: 2 }] }, { type: "number" }] }, "(1 | 2) & number"],
    [{ not: { type: "string" } }, "unknown"],
    [{ type: "object" }, "{\n  [key: string]: unknown;\n}"],
    [{ type: "object", additionalProperties: false }, "{\n  [key: string]: never;\n}"],
    [{ additionalProperties: { type: "number" } }, "{\n  [key: string]: number;\n}"],
    [
      { patternProperties: { "^a": { type: "number" } }, additionalProperties: false },
      "{\n  [key: string]: number;\n}",
    ],
    [
      { properties: { a: { type: "string" }, "b-c": { type: "null" }, d: false }, required: ["a", "e"] },
      '{\n  a: string;\n  "b-c"?: null;\n  d?: never;\n  e: unknown;\n}',
    ],
    [
      { properties: { a: { type: "string" } }, additionalProperties: { type: "number" } },
      "{\n  a?: string;\n  [key: string]: unknown;\n}",
    ],
    [
      {
        properties: {
          a: { type: "object", properties: { b: { description: "Two\nlines */ end", type: "null" } } },
        },
      },
      "{\n  a?: {\n    /**\n     * Two\n     * lines *\\/ end\n     */\n    b?: null;\n  };\n}",
    ],
    [{ $defs: { n: { type: "number" } }, $ref: "#/$defs/n" }, "number"],
    [{ properties: { next: { $ref: "#" } } }, "{\n  next?: unknown;\n}"],
    [
      {
        $defs: { n: { items: { $ref: "#/$defs/n" } } },
        properties: { a: { $ref: "#/$defs/n" }, b: { $ref: "#/$defs/n" } },
      },
      "{\n  a?: unknown[];\n  b?: unknown[];\n}",
    ],
  ])("%j", (schema, expected) => {
    expect(schemaType(schema)).toBe(expected);
  });

  test("a schema that is refused has no type", () => {
    expect(() => schemaType({ type: "strng" })).toThrow(TypeError);
  });

  test("nesting and doubling end in unknown and stay small", () => {
    let deep: JsonSchemaObject = { type: "string" };
    for (let level = 0; level < 40; level++) deep = { items: deep };
    expect(schemaType(deep)).toContain("unknown");
    const $defs: Record<string, JsonSchemaObject> = { d20: { type: "string" } };
    for (let index = 0; index < 20; index++) {
      const next = { $ref: `#/$defs/d${index + 1}` };
      $defs[`d${index}`] = { type: "object", properties: { a: next, b: next } };
    }
    expect(schemaType({ $defs, $ref: "#/$defs/d0" }).length).toBeLessThan(300_000);
    expect(schemaDeclarations({ $defs, $ref: "#/$defs/d0" }, "Input").length).toBeLessThan(2_000);
  });
});

describe("declarations", () => {
  test("what is referred to has a name, cycles end, and names do not clash", () => {
    const schema = {
      description: "A tree.",
      type: "object",
      properties: {
        root: { $ref: "#/$defs/tree-node" },
        again: { $ref: "#/$defs/tree_node" },
        self: { $ref: "#" },
      },
      $defs: {
        "tree-node": {
          description: "One node.",
          type: "object",
          properties: { children: { type: "array", items: { $ref: "#/$defs/tree-node" } } },
          required: ["children"],
        },
        tree_node: { type: "string" },
      },
    };
    const taken = new Set(["InputTreeNode2"]);
    expect(schemaDeclarations(schema, "Input", taken)).toBe(
      [
        "/** A tree. */",
        "type Input = {",
        "  root?: InputTreeNode;",
        "  again?: InputTreeNode3;",
        "  self?: Input;",
        "};",
        "",
        "/** One node. */",
        "type InputTreeNode = {",
        "  children: InputTreeNode[];",
        "};",
        "",
        "type InputTreeNode3 = string;",
        "",
      ].join("\n"),
    );
    expect([...taken].sort()).toEqual(["Input", "InputTreeNode", "InputTreeNode2", "InputTreeNode3"]);
  });
});

test("tags say what the type has no words for", () => {
  const schema = {
    properties: {
      a: { type: "string", format: "uuid", description: "Which.", default: "x" },
      b: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER, deprecated: true },
      c: { "x-format": "made up", default: "*/".repeat(50) },
      d: { "x-type": "Date" },
      e: { "x-type": "anything; }" },
    },
  };
  expect(schemaType(schema)).toBe(
    [
      "{",
      '  /**\n   * Which.\n   * @format uuid\n   * @default "x"\n   */',
      "  a?: string;",
      "  /**\n   * @minimum 1\n   * @deprecated\n   */",
      "  b?: number;",
      "  /** @format made up */",
      "  c?: unknown;",
      "  d?: Date;",
      "  e?: unknown;",
      "}",
    ].join("\n"),
  );
});

test("an expression has a name only for what it refers to", () => {
  const item = { type: "array", items: { $ref: "#/$defs/item" } };
  expect(schemaTypeParts({ $ref: "#/$defs/item", $defs: { item } }, "X")).toEqual({
    type: "XItem",
    declarations: "type XItem = XItem[];\n",
  });
  expect(schemaTypeParts({ properties: { next: { $ref: "#" } } }, "X")).toEqual({
    type: "X",
    declarations: "type X = {\n  next?: X;\n};\n",
  });
  expect(schemaTypeParts({ type: "string" }, "X", new Set(["X"]))).toEqual({
    type: "string",
    declarations: "",
  });
});

test("what passes a schema is of its type", async () => {
  const scalarSchema = fc.constantFrom<JsonSchemaObject>(
    { type: "string" },
    { type: "integer" },
    { type: "null" },
    { type: ["boolean", "string"] },
    { enum: ["a", 1, null] },
    { const: true },
    { const: { a: [1] } },
  );
  const { schema } = fc.letrec<{ schema: JsonSchemaObject }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      scalarSchema,
      fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
      tie("schema").map((items) => ({ type: "array", items })),
      fc
        .tuple(fc.array(tie("schema"), { minLength: 1, maxLength: 2 }), fc.nat(2))
        .map(([prefixItems, minItems]) => ({
          type: "array",
          prefixItems,
          minItems: Math.min(minItems, prefixItems.length),
          items: false,
        })),
      fc.tuple(tie("schema"), tie("schema"), fc.subarray(["a", "b"])).map(([a, b, required]) => ({
        type: "object",
        properties: { a, b },
        required,
        additionalProperties: false,
      })),
    ),
  }));
  const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<JsonValue>(null, true, false, 0, 1, "a", "b"),
      fc.array(tie("value"), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom("a", "b"), tie("value"), { maxKeys: 2, noNullPrototype: true }),
    ),
  }));
  const lines: string[] = [];
  fc.assert(
    fc.property(schema, fc.array(value, { minLength: 20, maxLength: 40 }), (one, values) => {
      const compiled = compileSchema(one);
      expect(compiled.ok).toBe(true);
      const distinct = new Set(values.map((each) => JSON.stringify(each)));
      for (const text of distinct) {
        const each = JSON.parse(text) as JsonValue; // it was one
        // The compiler finds an empty object too unlike a type whose members may all be absent.
        if (text.includes("{}") || !compiled.ok || !compiled.compiled.check(each).ok) continue;
        const number = lines.length;
        lines.push(
          `type T${number} = ${schemaType(one)}; declare const v${number}: ${schemaType({ const: each })};`,
        );
        lines.push(`{ const t: T${number} = v${number}; void t; }`);
      }
    }),
    { numRuns: 300, endOnFailure: true },
  );
  expect(lines.length).toBeGreaterThan(200);
  expect(await checkFlow({ "values.ts": `${lines.join("\n")}\nexport {};\n` })).toEqual([]);
});
