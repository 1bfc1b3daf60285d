// Deep sources are found, large ones pass, and the scan stays linear.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, expect, test } from "vitest";
import { findDeepNesting } from "./nesting.js";

const deep = 5_000;

describe("findDeepNesting", () => {
  test.each([
    ["brackets", `${"(".repeat(deep)}1${")".repeat(deep)}`],
    ["blocks", `${"a:{".repeat(deep)}${"}".repeat(deep)}`],
    ["arrays", `[${"[".repeat(deep)}${"]".repeat(deep)}]`],
    ["negations", `${"!".repeat(deep)}1`],
    ["arrows", `${"a=>".repeat(deep)}1`],
    ["arrows on lines", `${"a=>\n".repeat(deep)}1`],
    ["conditionals", `${"a?b:".repeat(deep)}1`],
    ["assignments", `${"a=".repeat(deep)}1`],
    ["powers", `${"a**".repeat(deep)}1`],
    ["member chains", `a${".b".repeat(deep)}`],
    ["member chains on lines", `a${"\n.b".repeat(deep)}`],
    ["calls", `a${"()".repeat(deep)}`],
    ["prefix words", `${"typeof ".repeat(deep)}1`],
    ["templates", `${"`${".repeat(deep)}1${"}`".repeat(deep)}`],
    ["type arguments", `let x: ${"A<".repeat(deep)}1${">".repeat(deep)}`],
  ])("finds %s", (_name, text) => {
    expect(findDeepNesting(text)).toBeLessThan(text.length);
  });

  test.each([
    ["a long sum", `${"a + ".repeat(deep)}1`],
    ["a long list", `[${"a.b, ".repeat(deep)}]`],
    ["many statements", "a.b.c();\n".repeat(deep)],
    ["many statements without semicolons", "const a = b.c(1)\n".repeat(deep)],
    ["many functions", "function f(a) { if (a) { return a.b }\n}\n".repeat(deep)],
    ["brackets in a string", `"${"(".repeat(deep)}"`],
    ["brackets in a template", `\`${"(".repeat(deep)}\``],
    ["brackets in a pattern", `x = /${"[(]".repeat(deep)}/`],
    ["brackets in comments", `/*${"(".repeat(deep)}*/ //${"(".repeat(deep)}`],
    ["many comparisons", `${"a === b && ".repeat(deep)}c`],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a template is what is tested
    ["many templates in a row", "f(`${a}`);".repeat(deep)],
  ])("lets %s pass", (_name, text) => {
    expect(findDeepNesting(text)).toBeUndefined();
  });

  test("lets large programs pass", () => {
    const require = createRequire(import.meta.url);
    for (const name of ["acorn", "typescript/package.json", "core-js/internals/export.js", "zod"]) {
      expect(findDeepNesting(readFileSync(require.resolve(name), "utf8"))).toBeUndefined();
    }
    const minified = readFileSync(require.resolve("quickjs-emscripten"), "utf8");
    expect(findDeepNesting(minified)).toBeUndefined();
  });

  test("takes linear time on text that never closes anything", () => {
    const texts = ["/*", "`", "'", "/", "${", "`${`${"].map((part) => part.repeat(500_000));
    for (const text of texts) expect([undefined, expect.any(Number)]).toContainEqual(findDeepNesting(text));
  });
});
