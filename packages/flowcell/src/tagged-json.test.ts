// Every value that a result can hold, as `--json` writes it.
import { describe, expect, test } from "vitest";
import { taggedJson } from "./tagged-json.js";

describe("taggedJson", () => {
  test("writes JSON values as they are", () => {
    const value = { a: [1, "x", null, true], b: { c: {} } };
    expect(taggedJson(value)).toEqual(value);
  });

  test.each([
    [undefined, { $type: "undefined" }],
    [-0, { $type: "number", value: "-0" }],
    [Number.NaN, { $type: "number", value: "NaN" }],
    [-Infinity, { $type: "number", value: "-Infinity" }],
    [10n ** 30n, { $type: "bigint", value: "1000000000000000000000000000000" }],
    [new Date(0), { $type: "Date", value: "1970-01-01T00:00:00.000Z" }],
    [new Date(Number.NaN), { $type: "Date", value: null }],
    [new Map([[1, new Set(["a"])]]), { $type: "Map", entries: [[1, { $type: "Set", values: ["a"] }]] }],
    [/a+/gi, { $type: "RegExp", source: "a+", flags: "gi" }],
    [new Uint8Array([0, 255]), { $type: "Uint8Array", base64: "AP8=" }],
    [new Uint8Array([9, 0, 255, 9]).subarray(1, 3), { $type: "Uint8Array", base64: "AP8=" }],
    [new Float64Array([1]), { $type: "Float64Array", base64: "AAAAAAAA8D8=" }],
    [new Uint8Array([1]).buffer, { $type: "ArrayBuffer", base64: "AQ==" }],
    [Object.assign([1], { 2: 2 }), [1, { $type: "hole" }, 2]],
  ])("writes %o with a tag", (value, json) => {
    expect(taggedJson(value)).toEqual(json);
  });

  test("writes errors with cause, members and own properties", () => {
    const error = Object.assign(new AggregateError([new TypeError("a")], "all", { cause: 1 }), {
      code: "E1",
    });
    expect(taggedJson(error)).toEqual({
      $type: "Error",
      name: "AggregateError",
      message: "all",
      cause: 1,
      errors: [{ $type: "Error", name: "TypeError", message: "a" }],
      properties: { code: "E1" },
    });
  });

  test("names the place that a cycle leads to, and repeats what is merely shared", () => {
    const shared = { n: 1 };
    const value: Record<string, unknown> = { a: { shared }, b: shared };
    Object.assign(value, { self: [value] });
    expect(taggedJson(value)).toEqual({
      a: { shared: { n: 1 } },
      b: { n: 1 },
      self: [{ $type: "cycle", path: "$" }],
    });
  });

  test("a script's own $type is not mistaken for a tag", () => {
    expect(taggedJson({ $type: "bigint", value: "1" })).toEqual({
      $type: "object",
      entries: [
        ["$type", "bigint"],
        ["value", "1"],
      ],
    });
  });

  test("keeps a key called __proto__", () => {
    const json = JSON.stringify(taggedJson(JSON.parse('{"__proto__":{"x":1}}')));
    expect(json).toBe('{"__proto__":{"x":1}}');
  });
});
