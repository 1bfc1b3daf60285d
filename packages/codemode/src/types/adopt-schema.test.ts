/** Foreign JSON Schemas: what each draft and dialect becomes, and what is refused or left out. */

import { compileSchema } from "@flowcell/manifest";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { adoptSchema, SchemaProblem } from "./adopt-schema.js";

const text = { type: "string" };

describe("other drafts and dialects", () => {
  test.each<[string, object, unknown]>([
    [
      "the address and dialect go",
      { $schema: "http://json-schema.org/draft-04/schema#", $id: "x:y", ...text },
      text,
    ],
    [
      "draft 4: exclusive bounds",
      { minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
      { exclusiveMinimum: 1, maximum: 5 },
    ],
    [
      "draft 7: lists of items",
      { items: [text], additionalItems: false },
      { prefixItems: [text], items: false },
    ],
    [
      "draft 7: dependencies",
      { dependencies: { a: ["b"], c: { required: ["d"] } } },
      { dependentRequired: { a: ["b"] }, dependentSchemas: { c: { required: ["d"] } } },
    ],
    [
      "draft 7: definitions",
      { definitions: { a: text, unused: {} }, $ref: "#/definitions/a" },
      { $ref: "#/$defs/a", $defs: { a: text } },
    ],
    ["2019-09: recursion", { items: { $recursiveRef: "#" } }, { items: { $ref: "#" } }],
    [
      "2020-12: closed objects",
      { properties: { a: text }, unevaluatedProperties: false },
      { properties: { a: text }, additionalProperties: false },
    ],
    [
      "anchors",
      { $defs: { a: { $anchor: "here", ...text } }, $ref: "#here" },
      { $ref: "#/$defs/here", $defs: { here: text } },
    ],
    [
      "addresses of parts",
      { $defs: { a: { $id: "https://example.com/a.json", ...text } }, $ref: "a.json" },
      { $ref: "#/$defs/ajson", $defs: { ajson: text } },
    ],
    [
      "pointers to anywhere",
      { properties: { "a/b": text, c: { $ref: "#/properties/a~1b" } } },
      { properties: { "a/b": text, c: { $ref: "#/$defs/a1b" } }, $defs: { a1b: text } },
    ],
    ["a reference to true", { $defs: { a: true }, $ref: "#/$defs/a" }, { allOf: [true] }],
    [
      "OpenAPI: nullable",
      { type: "string", nullable: true, enum: ["a"] },
      { type: ["string", "null"], enum: ["a", null] },
    ],
    [
      "OpenAPI: nullable without a type",
      { nullable: true, description: "D", oneOf: [text] },
      { description: "D", anyOf: [{ oneOf: [text] }, { type: "null" }] },
    ],
    [
      "OpenAPI: examples and documents",
      { ...text, example: "x", xml: {}, externalDocs: {}, discriminator: {} },
      text,
    ],
    [
      "formats that are not checked",
      { type: "integer", format: "int32" },
      { type: "integer", "x-format": "int32" },
    ],
    ["annotations of anybody's own", { ...text, "x-order": 1, markdownDescription: "m" }, text],
    ["names said twice", { required: ["a", "b", "a"] }, { required: ["a", "b"] }],
    ["empty lists of schemas", { ...text, allOf: [], anyOf: [] }, text],
    ["what has lost its other half", { ...text, else: false, minContains: 2 }, text],
    ["true", true as unknown as object, true],
  ])("%s", (_name, given, adopted) => {
    for (const reading of ["own", "server"] as const) {
      const result = adoptSchema(given, reading);
      expect(result).toEqual({ schema: adopted, warnings: [] });
      expect(compileSchema(result.schema).ok).toBe(true);
    }
  });

  test("formats are checked for a program's own schema and shown for a server's", () => {
    const given = { type: "string", format: "uuid" };
    expect(adoptSchema(given, "own").schema).toEqual(given);
    expect(adoptSchema(given, "server").schema).toEqual({ type: "string", "x-format": "uuid" });
  });

  test("a schema is not changed", () => {
    const given = { items: [{ nullable: true, type: "string" }], $ref: "#/items/0", required: ["a", "a"] };
    const before = structuredClone(given);
    adoptSchema(given, "server");
    expect(given).toEqual(before);
  });
});

/** What cannot be read: refused in a program's own schema; left out of a server's, with the rest kept. */
describe("what cannot be read", () => {
  const a = { properties: { a: text } };
  test.each<[string, object, string, unknown]>([
    ["a slip of the pen", { ...a, requried: ["a"] }, "did you mean required", a],
    ["an unknown type", { properties: { a: { type: "strin" } } }, "is no type", { properties: { a: {} } }],
    ["a pattern that backtracks", { ...text, pattern: "^(?=a)b" }, "pattern", text],
    ["a reference to a file", { ...a, $ref: "file:///etc/passwd" }, "leads to nothing", a],
    [
      "a reference to the net",
      { ...a, $ref: "https://example.com/schema.json" },
      "nothing else is opened",
      a,
    ],
    ["a reference to a neighbour", { ...a, $ref: "other.json#/a" }, "leads to nothing", a],
    ["a reference to what every object has", { ...a, $ref: "#/constructor" }, "leads to nothing", a],
    ["a reference that is none", { ...a, $ref: 5 }, "is no text", a],
    ["a schema that is none", { properties: { a: "string" } }, "is no schema", { properties: { a: true } }],
    ["properties that are none", { ...text, properties: [] }, "no object of schemas", text],
    ["branches that are none", { ...text, anyOf: {} }, "no list of schemas", text],
    ["a bound that is none", { type: "number", minimum: "1" }, "is no number", { type: "number" }],
    ["required that is none", { ...a, required: "a" }, "list of names", a],
    ["a default that is no JSON", { ...text, default: () => 1 }, "no value of JSON", text],
    [
      "unevaluatedProperties beside others",
      { allOf: [a], unevaluatedProperties: false },
      "additionalProperties",
      { allOf: [a] },
    ],
    [
      "a circle that reads nothing",
      { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" },
      "itself",
      undefined,
    ],
  ])("%s", (_name, given, message, rest) => {
    expect(() => adoptSchema(given, "own")).toThrow(SchemaProblem);
    expect(() => adoptSchema(given, "own")).toThrow(message);
    const { schema, warnings } = adoptSchema(given, "server");
    expect(warnings.join("\n")).toContain(message);
    expect(compileSchema(schema).ok).toBe(true);
    if (rest !== undefined) expect(schema).toEqual(rest);
  });

  test("an object that holds itself ends", () => {
    const given: { properties: Record<string, unknown> } = { properties: {} };
    given.properties["again"] = given;
    expect(() => adoptSchema(given, "own")).toThrow("holds itself");
    expect(adoptSchema(given, "server").schema).toEqual({ properties: { again: true } });
  });

  test("a schema that is too large or too deep ends, and says so", () => {
    let deep: object = text;
    for (let level = 0; level < 5_000; level++) deep = { items: deep };
    const wide = {
      properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`p${index}`, text])),
    };
    for (const given of [deep, wide]) {
      expect(() => adoptSchema(given, "own")).toThrow(/too large|too deep/);
      const { schema, warnings } = adoptSchema(given, "server");
      expect(warnings[0]).toMatch(/too large|too deep/);
      expect(compileSchema(schema).ok).toBe(true);
    }
  });

  test.each([null, 1, "string", [], new Date(0)])("%j is no schema", (given) => {
    for (const reading of ["own", "server"] as const)
      expect(() => adoptSchema(given, reading)).toThrow(SchemaProblem);
  });
});

test("whatever a server sends, what is adopted can be used, and adopting it again changes nothing", () => {
  const keywords = [
    ..."type items properties required enum const $ref $defs definitions nullable format allOf anyOf not if then".split(
      " ",
    ),
    ..."minimum exclusiveMinimum pattern default additionalProperties dependencies __proto__ constructor".split(
      " ",
    ),
  ];
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom<unknown>(
        "string",
        "object",
        "#",
        "#/$defs/a",
        "#/properties/a",
        "(",
        null,
        true,
        false,
        0,
        -1,
        1.5,
      ),
      fc.array(tie("value"), { maxLength: 3 }),
      fc
        .uniqueArray(fc.tuple(fc.constantFrom(...keywords, "a", "b"), tie("value")), {
          maxLength: 5,
          selector: ([key]) => key,
        })
        .map((entries) => Object.fromEntries(entries)),
    ),
  }));
  fc.assert(
    fc.property(value, (given) => {
      let schema: unknown;
      try {
        ({ schema } = adoptSchema(given, "server"));
      } catch (error) {
        expect(error).toBeInstanceOf(SchemaProblem);
        return;
      }
      expect(compileSchema(schema).ok).toBe(true);
      expect(adoptSchema(schema, "server")).toEqual({ schema, warnings: [] });
    }),
    { numRuns: 500 },
  );
});
