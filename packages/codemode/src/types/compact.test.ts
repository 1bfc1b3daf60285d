// A large tool set within a budget: what gets a line, what only its name.
import { expect, test } from "vitest";
import { toolSchema } from "../schema.js";
import { makeToolSet } from "../tool-set.js";
import { compactTypes, tokensOf } from "./compact.js";

const tool = {
  description: "Does something that takes a few words to say.",
  inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  execute: () => 1,
};
const many = (prefix: string, count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}_${n}`, tool] as const));
const set = makeToolSet({ small: many("read", 3), large: many("write", 200) }, toolSchema);

test("lines fill what the names leave, the smallest namespace first", () => {
  const whole = compactTypes(set, { tokensMax: 100_000 });
  expect(whole.form).toBe("full");
  for (const tokensMax of [1500, 2500, 4000]) {
    const { text, form, tokens } = compactTypes(set, { tokensMax, more: "See search." });
    expect(form).toBe("mixed");
    expect(tokens).toBeLessThanOrEqual(tokensMax);
    // Nothing is wasted: less than a line is left over.
    expect(tokensMax - tokensOf(text)).toBeLessThan(60);
    expect(text).toContain("See search.");
    expect(text).toContain("function read_2(input: { path: string }): Promise<unknown>;");
    expect(text).toContain("function write_0(input");
    for (let n = 0; n < 200; n++) expect(text).toMatch(new RegExp(`\\bwrite_${n}\\b`));
    expect(text).not.toContain("small, names only");
  }
});

test("with room for no line, names are all there is", () => {
  expect(compactTypes(set, { tokensMax: 128 }).form).toBe("names");
});
