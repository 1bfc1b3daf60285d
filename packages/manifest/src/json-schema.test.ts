/** JSON Schemas: messages, refusals, bounds; and against another implementation on schemas made at random. */

import { type Schema, Validator } from "@cfworker/json-schema";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileSchema } from "./json-schema.js";
import { pathText } from "./problem.js";
import { formatNames, matchesFormat } from "./schema-formats.js";
import { keywordNames } from "./schema-keywords.js";

function verdict(schema: unknown, value: unknown): string {
  const result = compileSchema(schema);
  if (!result.ok)
    throw new Error(result.findings.map((each) => `${pathText(each.path)}: ${each.message}`).join("; "));
  const checked = result.compiled.check(value, "input");
  return checked.ok ? "ok" : checked.message;
}

/** As text, because an object with a member `then` looks like a promise to tools. */
const conditional: unknown = JSON.parse(
  '{"if": {"minimum": 10}, "then": {"multipleOf": 5}, "else": {"multipleOf": 0.1}}',
);

describe("messages say where and what", () => {
  const order = {
    type: "object",
    required: ["items"],
    additionalProperties: false,
    properties: {
      items: { type: "array", items: { $ref: "#/$defs/item" } },
      note: { type: ["string", "null"], maxLength: 5 },
    },
    $defs: {
      item: {
        type: "object",
        properties: { quantity: { type: "integer", minimum: 1 }, unit: { enum: ["kg", "piece"] } },
        required: ["quantity"],
      },
    },
  };

  test.each([
    [{ items: [] }, "ok"],
    [{ items: [{ quantity: 1 }], note: null }, "ok"],
    [
      { items: [{ quantity: 1 }, { quantity: 1.5 }] },
      "input.items[1].quantity must be an integer, not a fraction",
    ],
    [{ items: [{ quantity: "1" }] }, "input.items[0].quantity must be an integer, not a string"],
    [{ items: [{ quantity: 0 }] }, "input.items[0].quantity must be at least 1"],
    [{ items: [{ qantity: 1 }] }, 'input.items[0] must have the property "quantity" (there is "qantity")'],
    [
      { items: [{ quantity: 1, unit: "KG" }] },
      'input.items[0].unit must be one of "kg", "piece"; did you mean "kg"?',
    ],
    [{ items: [], nott: 1 }, 'input must not have the property "nott"; did you mean "note"?'],
    [{ items: [], note: 3 }, "input.note must be a string or null, not a number"],
    [{ items: [], note: "abcdef" }, "input.note must have at most 5 characters"],
    [{ items: [], note: "💧💧💧💧💧" }, "ok"],
    [[], "input must be an object, not an array"],
    [undefined, "input must be an object, not undefined"],
    [{}, 'input must have the property "items"'],
  ])("%j: %s", (value, expected) => {
    expect(verdict(order, value)).toBe(expected);
  });

  test.each([
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, 1, "input must be a string or null, not a number"],
    [
      { oneOf: [{ properties: { kind: { const: "a" } } }, { properties: { kind: { const: "b" } } }] },
      { kind: "c" },
      'input.kind must be "a" or "b"',
    ],
    [
      {
        oneOf: [
          { properties: { kind: { const: "a" }, x: { type: "number" } }, required: ["kind", "x"] },
          { properties: { kind: { const: "b" }, y: { type: "number" } }, required: ["kind", "y"] },
        ],
      },
      { kind: "b", y: "1" },
      "input.y must be a number, not a string",
    ],
    [
      { oneOf: [{ type: "number" }, { minimum: 3 }] },
      4,
      "input must be of exactly one of 2 forms, and is of 2",
    ],
    [{ not: { type: "string" } }, "x", 'input must not be of the form that "not" describes'],
    [conditional, 12, "input must be a multiple of 5"],
    [conditional, 0.3, "ok"],
    [{ prefixItems: [{ type: "string" }], items: false }, ["a", 1], "input[1] must not be there"],
    [
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      "input[1] is the same as an item before it",
    ],
    [{ uniqueItems: true }, [1, "1", true, [1], null, "null"], "ok"],
    [
      { contains: { type: "string" } },
      [1],
      'input must hold at least 1 item of the form that "contains" describes',
    ],
    [{ contains: { type: "string" }, minContains: 0 }, [1], "ok"],
    [
      { propertyNames: { pattern: "^[a-z]+$" } },
      { A: 1 },
      'input has the property "A", whose name must match the pattern "^[a-z]+$"',
    ],
    [
      { patternProperties: { "^x": { type: "number" } }, additionalProperties: false },
      { x1: "a" },
      "input.x1 must be a number, not a string",
    ],
    [{ dependentRequired: { a: ["b"] } }, { a: 1 }, 'input must have the property "b" because it has "a"'],
    [{ dependentSchemas: { a: { required: ["c"] } } }, { a: 1 }, 'input must have the property "c"'],
    [{ minProperties: 2 }, { a: 1 }, "input must have at least 2 properties"],
    [{ properties: { "a b": { type: "null" } } }, { "a b": 1 }, 'input["a b"] must be null, not a number'],
    [{ const: { a: [1] } }, { a: [2] }, 'input must be {"a":[1]}'],
    [false, 1, "input must not be there"],
    [{ exclusiveMinimum: 0 }, 0, "input must be above 0"],
    [{ minimum: 0 }, Number.NaN, "input must be at least 0"],
    [{ format: "date" }, "2024-02-30", "input must be of the format date"],
  ])("%j on %j: %s", (schema, value, expected) => {
    expect(verdict(schema, value)).toBe(expected);
  });

  test("a recursive schema is followed as deep as the value goes", () => {
    const tree = {
      type: "object",
      properties: { name: { type: "string" }, children: { items: { $ref: "#" } } },
    };
    const value = { children: [{ children: [{ name: 1 }] }] };
    expect(verdict(tree, value)).toBe("input.children[0].children[0].name must be a string, not a number");
  });

  test("messages hold nothing of the value but the names of its properties, short and printable", () => {
    const message = verdict(
      { additionalProperties: { type: "number" } },
      { [`\u202e${"k".repeat(500)}`]: "secret" },
    );
    expect(message).not.toContain("secret");
    expect(message).not.toContain("\u202e");
    expect(message.length).toBeLessThan(200);
  });
});

describe("values that JSON has not", () => {
  test.each([
    [new Date(0), "a Date"],
    [new Map(), "a Map"],
    [1n, "a bigint"],
    [Symbol("x"), "a symbol"],
    [new (class Point {})(), "a class instance"],
  ])("%o is of no type", (value, name) => {
    expect(verdict({ type: ["object", "number", "string"] }, value)).toContain(`not ${name}`);
    expect(verdict({}, value)).toBe("ok");
    expect(verdict({ const: {} }, value)).not.toBe("ok");
  });

  test("a property that is undefined is absent", () => {
    const schema = { properties: { a: { type: "string" } }, additionalProperties: false, maxProperties: 1 };
    expect(verdict(schema, { a: undefined, b: undefined })).toBe("ok");
    expect(verdict({ required: ["a"] }, { a: undefined })).toBe('input must have the property "a"');
  });

  test("what objects inherit is not there", () => {
    expect(verdict({ required: ["toString"] }, {})).toBe('input must have the property "toString"');
    expect(verdict({ properties: { constructor: { type: "string" } } }, {})).toBe("ok");
    expect(verdict({ properties: { a: true }, additionalProperties: false }, { toString: 1 })).toContain(
      "toString",
    );
    const proto: unknown = JSON.parse('{"__proto__": 1}');
    expect(verdict({ additionalProperties: false }, proto)).toContain("__proto__");
  });
});

describe("schemas that are refused", () => {
  test.each<[unknown, string, string]>([
    [[], "", "must be a schema"],
    ["string", "", "must be a schema"],
    [{ type: "strng" }, "type", "no type"],
    [{ type: [] }, "type", "names no type"],
    [{ requred: [] }, "requred", "unknown keyword"],
    [{ properties: { a: { tpye: "x" } } }, "properties.a.tpye", "unknown keyword"],
    [{ properties: [] }, "properties", "must be an object of schemas"],
    [{ required: "a" }, "required", "must be a list of names"],
    [{ required: ["a", "a"] }, "required", "twice"],
    [{ items: [{}] }, "items", "use prefixItems"],
    [{ minLength: -1 }, "minLength", "at least 0"],
    [{ multipleOf: 0 }, "multipleOf", "above 0"],
    [{ exclusiveMinimum: true }, "exclusiveMinimum", "must be a number"],
    [{ enum: [] }, "enum", "at least one"],
    [{ anyOf: [] }, "anyOf", "at least one"],
    [{ anyOf: {} }, "anyOf", "at least one"],
    [{ format: "datetime" }, "format", "no format"],
    [{ pattern: "(" }, "pattern", "no regular expression"],
    [{ pattern: "(?=a)" }, "pattern", "looks ahead"],
    [{ patternProperties: { "(a)\\1": true } }, 'patternProperties["(a)\\\\1"]', "refers back"],
    [JSON.parse('{"then":{}}'), "then", 'needs "if"'],
    [{ minContains: 1 }, "minContains", 'needs "contains"'],
    [{ $schema: "http://json-schema.org/draft-04/schema#" }, "$schema", "no dialect"],
    [{ $id: "https://example.com/x" }, "$id", "not supported"],
    [{ nullable: true }, "nullable", '["string", "null"]'],
    [{ unevaluatedProperties: false }, "unevaluatedProperties", "use additionalProperties"],
    [{ $ref: "https://example.com/schema" }, "$ref", "must point into this schema"],
    [{ $ref: "file:///etc/passwd" }, "$ref", "must point into this schema"],
    [{ $ref: "other.json#/a" }, "$ref", "must point into this schema"],
    [{ $ref: "#name" }, "$ref", "must point into this schema"],
    [{ $ref: "#/$defs/none" }, "$ref", "leads to no schema"],
    [{ $ref: "#/constructor" }, "$ref", "leads to no schema"],
    [{ $ref: "#/const", const: { type: "string" } }, "$ref", "leads to no schema"],
    [{ $ref: "#/%" }, "$ref", "leads to no schema"],
    [{ $ref: "#" }, "", "refers back to itself"],
    [{ anyOf: [{ $ref: "#" }] }, "", "refers back to itself"],
    [
      { $defs: { a: { not: { $ref: "#/$defs/b" } }, b: { if: { $ref: "#/$defs/a" } } } },
      "$defs.a",
      "refers back to itself",
    ],
  ])("%j", (schema, path, reason) => {
    const result = compileSchema(schema);
    const findings = result.ok ? [] : result.findings;
    expect(findings.map((each) => pathText(each.path))).toContain(path);
    expect(findings.find((each) => pathText(each.path) === path)?.message).toContain(reason);
  });

  test("references through properties, items and escapes are followed", () => {
    expect(verdict({ $defs: { "a/b~c%": { type: "string" } }, $ref: "#/$defs/a~1b~0c%25" }, 1)).toContain(
      "a string",
    );
    expect(
      verdict({ prefixItems: [true, { type: "string" }, { $ref: "#/prefixItems/1" }] }, [1, "a", 2]),
    ).toBe("input[2] must be a string, not a number");
    expect(
      verdict({ definitions: { no: false }, properties: { a: { $ref: "#/definitions/no" } } }, { a: 1 }),
    ).toBe("input.a must not be there");
  });

  test("annotations of one's own begin with x- and check nothing", () => {
    expect(
      verdict({ "x-order": 1, title: "a", description: "b", default: 1, examples: [1] }, "anything"),
    ).toBe("ok");
  });

  test("too deep, too many and too wide schemas are refused", () => {
    let deep: object = {};
    for (let level = 0; level < 60; level++) deep = { items: deep };
    expect(compileSchema(deep).ok).toBe(false);
    expect(compileSchema({ allOf: Array.from({ length: 2_100 }, () => ({})) }).ok).toBe(false);
    const cyclic: Record<string, unknown> = {};
    cyclic["items"] = cyclic;
    expect(compileSchema(cyclic).ok).toBe(false);
  });

  test("every keyword that checks something has a shape of its own", () => {
    const anything = new Set(["const", "default", "examples"]);
    for (const keyword of keywordNames) {
      const wrong = compileSchema({ [keyword]: { "": [{ no: 1 }] } });
      expect([keyword, wrong.ok]).toEqual([keyword, anything.has(keyword)]);
    }
  });
});

describe("the host cannot be made to hang", () => {
  test("patterns that backtrack elsewhere are decided", () => {
    expect(verdict({ pattern: "^(a+)+$" }, `${"a".repeat(100_000)}!`)).toContain("must match");
  });

  test("a pattern on a text that is too long for it is refused, not waited for", () => {
    const pattern = `(?:${"[ab]{1,9}".repeat(20)})+$`;
    expect(verdict({ pattern }, `${"ab".repeat(4_000_000)}!`)).toBe(
      "input is too large or too deeply nested to be checked",
    );
  });

  test("branches that multiply with every level are ended", () => {
    const node = { properties: { a: { $ref: "#/$defs/node" } }, required: ["b"] };
    const schema = { $defs: { node: { anyOf: [{ ...node }, { ...node }] } }, $ref: "#/$defs/node" };
    let value: object = {};
    for (let level = 0; level < 100; level++) value = { a: value };
    expect(verdict(schema, value)).toBe("input is too large or too deeply nested to be checked");
  });

  test("references that double are ended", () => {
    const $defs: Record<string, object> = { d60: { type: "string" } };
    for (let index = 0; index < 60; index++) {
      $defs[`d${index}`] = { allOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] };
    }
    expect(verdict({ $defs, $ref: "#/$defs/d0" }, "x")).toBe(
      "input is too large or too deeply nested to be checked",
    );
  });

  test("no nesting of keywords and values runs the parent's stack out", () => {
    let value: object = {};
    for (let level = 0; level < 1_000; level++) value = { a: value };
    let list: unknown[] = [];
    for (let level = 0; level < 1_000; level++) list = [list];
    const inner = { properties: { a: { $ref: "#" } } };
    const schemas = [
      { anyOf: [inner] },
      { oneOf: [inner] },
      { allOf: [{ if: { not: { anyOf: [{ oneOf: [{ allOf: [inner] }] }] } } }] },
      { dependentSchemas: { a: inner } },
      { propertyNames: { anyOf: [{ minLength: 1 }] }, additionalProperties: { $ref: "#" } },
      { patternProperties: { a: { anyOf: [{ $ref: "#" }] } } },
      { contains: { anyOf: [{ $ref: "#" }, true] } },
      { prefixItems: [{ not: { $ref: "#" } }] },
      { uniqueItems: true, items: { $ref: "#" } },
    ];
    for (const schema of schemas) {
      const verdicts = [value, list].map((each) => verdict(schema, each));
      expect(verdicts).toContain("input is too large or too deeply nested to be checked");
    }
  });

  test("values that are nested too deeply are refused, cyclic ones too", () => {
    const schema = { items: { $ref: "#" } };
    let deep: unknown = [];
    for (let level = 0; level < 100_000; level++) deep = [deep];
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    for (const value of [deep, cyclic]) {
      expect(verdict(schema, value)).toBe("input is too large or too deeply nested to be checked");
      expect(verdict({ uniqueItems: true }, [value])).toBe(
        "input is too large or too deeply nested to be checked",
      );
    }
  });

  test("a large input of ordinary shape is checked to its end", () => {
    const schema = {
      type: "array",
      items: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] },
    };
    const value = Array.from({ length: 300_000 }, (_, a) => ({ a }));
    expect(verdict(schema, value)).toBe("ok");
    expect(verdict(schema, [...value, { a: "x" }])).toBe("input[300000].a must be an integer, not a string");
  });

  test("neither the schema nor the value is changed", () => {
    const schema = { properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { default: 1, type: "number" } } };
    const value = { a: 2 };
    const before = structuredClone({ schema, value });
    verdict(Object.freeze(schema), Object.freeze(value));
    expect({ schema, value }).toEqual(before);
    expect(Reflect.ownKeys(schema.properties.a)).toEqual(["$ref"]);
  });
});

describe("formats", () => {
  test.each<[string, readonly string[], readonly string[]]>([
    [
      "date",
      ["2024-02-29", "0001-01-01", "2000-12-31"],
      ["2023-02-29", "2024-13-01", "2024-1-1", "1900-02-29", "x"],
    ],
    ["time", ["00:00:00Z", "23:59:60.123+02:00"], ["24:00:00Z", "00:00:00", "00:60:00Z"]],
    [
      "date-time",
      ["2024-01-01T00:00:00Z", "2024-01-01 10:00:00+01:00"],
      ["2024-01-01", "2024-01-01T00:00:00"],
    ],
    ["duration", ["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P2W"], ["P", "PT", "1D", "P1DT", "P1W2D"]],
    [
      "email",
      ["me@example.com", "a.b+c@localhost"],
      ["me", "@a", "a@", ".a@b", "a..b@c", "a@1.2.3.4", "a b@c"],
    ],
    ["hostname", ["example.com", "a"], ["1.2.3.4", "-a", "a..b", ""]],
    ["ipv4", ["1.2.3.4"], ["1.2.3", "1.2.3.4.", "::1", "256.1.1.1"]],
    ["ipv6", ["::1", "2001:db8::1"], ["1.2.3.4", "[::1]", "::g"]],
    [
      "uri",
      ["https://example.com/a?b#c", "mailto:me@example.com", "urn:x:y"],
      ["/a", "example.com", "https://a b", "http://["],
    ],
    ["uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000", "x"]],
    ["password", ["anything"], []],
  ])("%s", (format, good, bad) => {
    for (const text of good) expect([text, matchesFormat(format, text)]).toEqual([text, true]);
    for (const text of bad) expect([text, matchesFormat(format, text)]).toEqual([text, false]);
  });

  test("every format decides a hostile text of any length", () => {
    for (const format of formatNames) {
      for (const piece of ["a", "1", ":", "a-", "a.", "1.", "%61", "@"]) {
        const text = piece.repeat(1_000_000);
        expect(matchesFormat(format, text)).toBe(false);
        expect(typeof matchesFormat(format, `${text.slice(0, 8_000)}!`)).toBe("boolean");
      }
    }
  });
});

test("decides as another implementation does", () => {
  const scalar = fc.constantFrom<unknown>(null, true, false, 0, 1, 2, -1, 1.5, 0.3, "", "a", "ab", "💧");
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      scalar,
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value"), { maxKeys: 3, noNullPrototype: true }),
    ),
  }));
  const { schema } = fc.letrec<{ schema: Schema | boolean }>((tie) => {
    const sub = tie("schema");
    const key = fc.constantFrom("a", "b", "c");
    const keywords = fc.record(
      {
        type: fc.oneof(
          fc.constantFrom("null", "boolean", "integer", "number", "string", "array", "object"),
          fc.uniqueArray(fc.constantFrom("null", "integer", "string", "array", "object"), { minLength: 1 }),
        ),
        const: value,
        enum: fc.array(value, { minLength: 1, maxLength: 3 }),
        minimum: fc.constantFrom(0, 1, 1.5),
        exclusiveMaximum: fc.constantFrom(1, 2),
        multipleOf: fc.constantFrom(0.1, 1, 2, 0.5),
        minLength: fc.nat(2),
        maxLength: fc.nat(2),
        pattern: fc.constantFrom("a", "^a?b*$", "^.$"),
        minItems: fc.nat(2),
        maxItems: fc.nat(3),
        uniqueItems: fc.boolean(),
        items: sub,
        prefixItems: fc.array(sub, { minLength: 1, maxLength: 2 }),
        contains: sub,
        properties: fc.dictionary(key, sub, { maxKeys: 2, noNullPrototype: true }),
        required: fc.uniqueArray(key, { maxLength: 2 }),
        additionalProperties: sub,
        patternProperties: fc.dictionary(fc.constantFrom("^a", "b|c"), sub, {
          maxKeys: 1,
          noNullPrototype: true,
        }),
        propertyNames: fc.constantFrom({ maxLength: 1 }, { enum: ["a", "b"] }),
        minProperties: fc.nat(2),
        maxProperties: fc.nat(2),
        dependentRequired: fc.dictionary(key, fc.uniqueArray(key), { maxKeys: 1, noNullPrototype: true }),
        dependentSchemas: fc.dictionary(key, sub, { maxKeys: 1, noNullPrototype: true }),
        allOf: fc.array(sub, { minLength: 1, maxLength: 2 }),
        anyOf: fc.array(sub, { minLength: 1, maxLength: 2 }),
        oneOf: fc.array(sub, { minLength: 1, maxLength: 2 }),
        not: sub,
        if: sub,
      },
      { requiredKeys: [] },
    );
    // Few keywords each, so that some values pass.
    const few = fc
      .tuple(keywords, fc.uniqueArray(fc.nat(28), { minLength: 1, maxLength: 3 }))
      .map(([all, kept]) => {
        const names = Object.keys(all).filter((_, index) => kept.includes(index));
        return Object.fromEntries(Object.entries(all).filter(([name]) => names.includes(name)));
      });
    return { schema: fc.oneof({ maxDepth: 3 }, fc.boolean(), few, few) as fc.Arbitrary<Schema | boolean> };
  });
  let passed = 0;
  let failed = 0;
  fc.assert(
    fc.property(schema, fc.array(value, { minLength: 1, maxLength: 5 }), (one, values) => {
      const compiled = compileSchema(one);
      expect(compiled.ok).toBe(true);
      const other = new Validator(structuredClone(one), "2020-12");
      for (const each of values) {
        const expected = other.validate(each).valid;
        const actual = compiled.ok && compiled.compiled.check(each).ok;
        expect([one, each, actual]).toEqual([one, each, expected]);
        if (actual) passed++;
        else failed++;
      }
    }),
    { numRuns: 3_000 },
  );
  // Both verdicts were really compared.
  expect(Math.min(passed, failed)).toBeGreaterThan(500);
});
