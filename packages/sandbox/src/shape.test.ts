// Tests of the shapes: what is read is what was written, what is wrong is named with its place, and nothing slips through.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  flag,
  list,
  object,
  oneOf,
  optional,
  readShape,
  record,
  type Shape,
  text,
  whole,
  withDefault,
} from "./shape.js";

const shape = object({
  name: text(1, 4, /^[a-z]+$/),
  size: whole(-1, 9),
  on: withDefault(flag, true),
  kind: oneOf("a", "b"),
  rows: withDefault(list(object({ n: whole(0, 9) }), 2), []),
  map: withDefault(record(text(1, 2), text(0, 1)), {}),
  more: optional(whole(1, 1)),
});
const valid = { name: "ab", size: 0, kind: "a" };

function wrong(value: unknown, of: Shape<unknown> = shape): unknown {
  const result = readShape(of, value);
  return result.ok ? "read" : result.issues;
}

test("what is left out is read as its default, and what is given as it is", () => {
  expect(readShape(shape, valid)).toEqual({ ok: true, value: { ...valid, on: true, rows: [], map: {} } });
  const full = { ...valid, on: false, rows: [{ n: 1 }], map: { x: "y" }, more: 1 };
  expect(readShape(shape, full)).toEqual({ ok: true, value: full });
});

describe("wrong", () => {
  test.each<[string, Record<string, unknown>, readonly unknown[]]>([
    ["a missing text", { name: undefined }, [{ path: ["name"], code: "wrong_type", expected: "string" }]],
    ["a short text", { name: "" }, [{ path: ["name"], code: "too_small", least: 1 }]],
    ["a long text", { name: "abcde" }, [{ path: ["name"], code: "too_big", most: 4 }]],
    ["a text of another form", { name: "A" }, [{ path: ["name"], code: "wrong_form" }]],
    ["a fraction", { size: 0.5 }, [{ path: ["size"], code: "wrong_type", expected: "int" }]],
    ["no number", { size: Number.NaN }, [{ path: ["size"], code: "wrong_type", expected: "number" }]],
    [
      "infinity",
      { size: Number.POSITIVE_INFINITY },
      [{ path: ["size"], code: "wrong_type", expected: "number" }],
    ],
    ["too little", { size: -2 }, [{ path: ["size"], code: "too_small", least: -1 }]],
    ["too much", { size: 10 }, [{ path: ["size"], code: "too_big", most: 9 }]],
    ["a flag that is a text", { on: "true" }, [{ path: ["on"], code: "wrong_type", expected: "boolean" }]],
    ["null for a default", { on: null }, [{ path: ["on"], code: "wrong_type", expected: "boolean" }]],
    ["another value", { kind: "c" }, [{ path: ["kind"], code: "wrong_value", values: ["a", "b"] }]],
    ["too many rows", { rows: [1, 2, 3] }, [{ path: ["rows"], code: "too_big", most: 2 }]],
    [
      "a key in a row",
      { rows: [{ n: 1 }, { n: 1, m: 1 }] },
      [{ path: ["rows", 1], code: "unknown_keys", keys: ["m"] }],
    ],
    ["a hole", { rows: new Array(1) }, [{ path: ["rows", 0], code: "wrong_type", expected: "object" }]],
    ["a name in a record", { map: { abc: "" } }, [{ path: ["map", "abc"], code: "too_big", most: 2 }]],
    ["a list for a record", { map: [] }, [{ path: ["map"], code: "wrong_type", expected: "record" }]],
    ["an unknown key", { nam: 1 }, [{ path: [], code: "unknown_keys", keys: ["nam"] }]],
    [
      "two things",
      { size: 10, kind: 1 },
      [
        { path: ["size"], code: "too_big", most: 9 },
        { path: ["kind"], code: "wrong_value", values: ["a", "b"] },
      ],
    ],
  ])("%s", (_name, change, issues) => {
    expect(wrong({ ...valid, ...change })).toEqual(issues);
  });

  test("a prototype written as a key, and keys that are inherited", () => {
    expect(wrong(JSON.parse('{"name":"ab","size":0,"kind":"a","__proto__":{"on":false}}'))).toEqual([
      { path: [], code: "unknown_keys", keys: ["__proto__"] },
    ]);
    const map = JSON.parse('{"__proto__":"x"}');
    expect(wrong({ ...valid, map })).toEqual([{ path: ["map", "__proto__"], code: "too_big", most: 2 }]);
    expect(wrong(Object.create({ ...valid, colour: 1 }))).toEqual([
      { path: [], code: "unknown_keys", keys: ["colour"] },
    ]);
  });
});

test("whatever is read has the keys of the shape alone", () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true }), (value) => {
      const mixed: unknown = typeof value === "object" ? { ...valid, ...value } : value;
      const result = readShape(shape, mixed);
      if (result.ok)
        expect(Object.keys(result.value).sort()).toEqual([
          "kind",
          "map",
          "more",
          "name",
          "on",
          "rows",
          "size",
        ]);
    }),
  );
});
