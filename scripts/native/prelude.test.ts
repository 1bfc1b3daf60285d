// The bundle of the prelude: template literals leave the core without a change of meaning, and the output is repeatable.
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";
import { afterAll, describe, expect, test } from "vitest";
import { buildPrelude, templatesToAdditions } from "./prelude.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const sources = join(root, "packages/prelude/src");
const scratch = join(tmpdir(), `flowcell-prelude-${process.pid}`);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The value of an expression, in the names a, b and c. */
const evaluate = (expression: string): unknown =>
  new Function("a", "b", "c", `return ${expression}`)(1, "two", [3]);

describe("templates become additions", () => {
  // An @ stands for the dollar sign, so that no linter takes these texts for templates.
  const expressions = [
    "`plain`",
    "``",
    "`@{a}`",
    "`x@{a}y@{b}z`",
    "`@{a}@{b}`",
    "`nested @{`in @{b} @{`deep @{a}`}`} out`",
    "`quotes \" and ' and \\` and \\@{a}`",
    "`line\nbreak and \\n and \\\\`",
    "`@{a === 1 ? `yes` : 'no'}`",
    "`@{((x) => { return { y: x }.y })(a)}`",
    "`@{a + 1}@{a - 1}`",
    "'`not one` @{a}' + `@{b}`",
    '"`" + `x`',
    "/* `comment` */ `@{a /* } */}` // `end\n",
    "[`a`, `@{b}`].join()",
  ].map((expression) => expression.replaceAll("@", "$"));

  test.each(expressions)("%s keeps its value", (expression) => {
    const rewritten = templatesToAdditions(expression);
    expect(evaluate(rewritten)).toEqual(evaluate(expression));
  });

  test("comments and strings are left as they are", () => {
    const source = "// it's `code`\nconst x = '`'; /* ` */ const y = \"it's\";\n";
    expect(templatesToAdditions(source)).toBe(source);
  });

  test.each(["`open", "`${open", "'open\n"])("%j is refused", (source) => {
    expect(() => templatesToAdditions(source, "it.ts")).toThrow(/^it\.ts: /);
  });
});

describe("the core", () => {
  const files = readdirSync(sources).filter(
    (name) => name.endsWith(".ts") && !/\.(?:test|d)\.ts$/.test(name),
  );

  // esbuild writes a string with a line feed as a template without substitutions, which the engine takes for a string.
  test.each(files)("%s has no template with substitutions in the bundle", async (name) => {
    const source = readFileSync(join(sources, name), "utf8");
    const { code } = await transform(templatesToAdditions(source, name), {
      loader: "ts",
      minify: true,
      target: "es2023",
      legalComments: "none",
    });
    expect(code).not.toContain("${");
  });

  test.each(files)("%s has no loop over the iteration protocol that runs after the image is made", (name) => {
    const source = readFileSync(join(sources, name), "utf8");
    const imageTime = new Set([
      "boundary.ts",
      "define.ts",
      "surface.ts",
      "throwers.ts",
      "typed-arrays.ts",
      "value-decode.ts",
      "host-object.ts",
    ]);
    const localeOnly = name.startsWith("locale");
    if (imageTime.has(name) || localeOnly) return;
    expect(source).not.toMatch(/\bfor \((?:const|let) .* of |\.\.\.[a-z]\w*[\])]/);
  });
});

test("the same sources give the same bundle", async () => {
  const one = await buildPrelude({ root, out: join(scratch, "one.js") });
  const other = await buildPrelude({ root, out: join(scratch, "other.js") });
  expect(readFileSync(one, "utf8")).toBe(readFileSync(other, "utf8"));
  expect(readFileSync(one, "utf8")).toMatch(
    /^\(\(\)=>\{"use strict";[\s\S]*return prelude\.exports\}\)\(\)\n$/,
  );
});
