// Which texts are scripts, what they become, and where messages about them point. What scripts do is tested in workers.
import { describe, expect, test } from "vitest";
import { Normalizer, type NormalResult } from "./normalize.js";

const plain = { before: "(function(){return(", after: ")})" };
const normalizer = new Normalizer(plain);
const read = async (text: string, sourceBytes = 262_144): Promise<NormalResult> =>
  await normalizer.normalize(text, { sourceBytes });

/** Runs what the text became, here, where every text is this file's own. */
async function resultOf(text: string): Promise<unknown> {
  const result = await read(text);
  if (!result.ok) throw new Error(result.failure.message);
  const outer: unknown = new Function(`return ${result.script.text}`)();
  const inner: unknown = typeof outer === "function" ? outer() : undefined;
  return typeof inner === "function" ? await inner() : inner;
}

async function failureOf(text: string): Promise<string> {
  const result = await read(text);
  return result.ok ? "" : result.failure.message;
}

describe("forms", () => {
  const forms: readonly (readonly [name: string, text: string, value: unknown])[] = [
    ["a body that returns", "const a = await 1;\nreturn a + 1;", 2],
    ["an expression", "1 + 1", 2],
    ["a trailing expression without a semicolon", "const a = 1\na + 1", 2],
    ["a trailing expression with a comment behind it", "const a = 1; a + 1 // the sum", 2],
    ["a trailing expression in parentheses", "(1, 2)", 2],
    ["a promise at the end", "Promise.resolve(3)", 3],
    ["a directive alone", '"use strict"', "use strict"],
    ["nothing but a declaration", "const a = 1;", undefined],
    ["an arrow function", "async () => 4", 4],
    ["an arrow function with a semicolon and comments", "// first\nasync () => { return 4 }; // last", 4],
    ["an arrow function that is not async", "() => 4", 4],
    ["a function expression in parentheses", "(async function () { return 5 })", 5],
    ["a function that calls itself", "(async () => 6)()", 6],
    ["a named function", "async function anything() { return 7 }", 7],
    ["a function held by a constant", "const go = async () => { return 8 };", 8],
    [
      "a function called main among others",
      "function help() { return 9 }\nfunction main() { return help() }",
      9,
    ],
    ["a module with a function", "export default async function () { return 10 }", 10],
    ["a module with a named function", "export default function go() { return 11 }", 11],
    ["a module with an arrow and more exports", "export const n = 12;\nexport default () => n;", 12],
    ["a module with a value", "export default 13", 13],
    ["a module that names its default below", "const f = () => 14;\nexport { f as default };", 14],
    ["a module that awaits at its top", "const n = await 15;\nexport default () => n", 15],
    ["a fence", "```js\nreturn 16\n```", 16],
    ["a fence without a language", "```\n16\n```\n", 16],
    ["a fence of tildes", "~~~javascript\n16\n~~~", 16],
    ["a fence that is not closed", "```js\n16", 16],
    ["a fence between prose", "Here it is:\n\n```js\n17\n```\nThat is all.", 17],
    ["a fence after one word", "Sure\n```js\n17\n```", 17],
    ["a fence beside another language", "```js\n18\n```\n```json\n{}\n```", 18],
    ["a longer fence around a shorter one", "````js\n/*\n```\n*/ 28\n````", 28],
    ["a hashbang", "#!/usr/bin/env node\n19", 19],
    ["TypeScript", "const n: number = 20;\nn", 20],
    ["TypeScript with an enum", "enum E { A = 21 }\nreturn E.A as number", 21],
    ["TypeScript in a fence called js", "```js\nconst n: number = 22;\nn\n```", 22],
    ["a typed arrow", "async (): Promise<number> => 23", 23],
    ["a typed named function", "async function f(): Promise<number> { return 24 }", 24],
    ["a typed module", "export default async function (): Promise<number> { return 25 }", 25],
    [
      "type arguments that JavaScript could read as comparisons",
      "const m = new Map<string, number>(); const f = <T>(x: T) => x; f<number>(26)",
      26,
    ],
    [
      "words of TypeScript in a text",
      "const s = 'a as b: c<d>'; const o = { as: 1, type: 2, satisfies: 3 }; [s, o.as, o.type < 3].join()",
      "a as b: c<d>,1,true",
    ],
    ["operators that look like a comment of HTML", "let a = 1, b = 2; a<!--b", false],
    ["a comment of HTML in a text", "'<!-- no -->'", "<!-- no -->"],
    ["a fence inside a comment", "/*\n```js\nnot this\n```\n*/\n27", 27],
    ["a fence inside a template", "`\n\\`\\`\\`js\n`.length", 7],
    ["export in a text of a typed body", "const s: string = `\nexport default 1`; s.length", 17],
  ];

  for (const [name, text, value] of forms) {
    test(`${name} is a script`, async () => {
      expect(await resultOf(text)).toEqual(value);
    });
  }

  test("functions that nothing calls are told", async () => {
    const result = await read("function a() {}\nfunction b() {}");
    expect(result.ok && result.script.warnings).toEqual([expect.stringMatching(/calls none/)]);
  });
});

describe("what is put around a script stays around all of it", () => {
  for (const [name, text] of [
    ["a body", "return 1 })(); (function(){"],
    ["an expression", "1) + (2"],
    ["a module", "export default 1 }); ({"],
    ["TypeScript", "const n: number = 1; } globalThis.escaped = 1; async function y() {"],
    ["TypeScript that exports", "const n: number = 1; } export async function y() {"],
    ["a comment that is not closed", "1 /*"],
    ["a template that is not closed", "`a ${1"],
  ] as const) {
    test(`${name} that closes what it did not open is refused`, async () => {
      expect((await read(text)).ok).toBe(false);
    });
  }

  test("a comment at the end hides nothing", async () => {
    expect(await resultOf("return 1 //")).toBe(1);
    expect(await resultOf("const n: number = 2; return n //")).toBe(2);
  });
});

describe("failures", () => {
  test("point into the caller's text, prose and fences counted", async () => {
    expect(await failureOf("const a = 1;\nconst b = ;")).toMatch(/^script\.js:2:11: /);
    expect(await failureOf("Text.\n\n```ts\nconst a: number = 1;\n  const b = ;\n```")).toMatch(
      /^script\.js:5:13: /,
    );
    expect(await failureOf("let a: number = ;")).toMatch(/^script\.js:1:17: /);
    expect(await failureOf("if (x) {\n  y()")).toMatch(/^script\.js:2:6: /);
  });

  test("show the line", async () => {
    const result = await read("```js\n\nlet a = (;\n```");
    expect(result.ok ? "" : result.failure.frame).toBe("    3 | let a = (;\n                 ^");
  });

  test("of text that is no JavaScript say that JavaScript was expected", async () => {
    for (const text of [
      "ls -la /tmp",
      "git status --short",
      "Please list the files in the folder",
      "SELECT name FROM users WHERE id = 1",
      "<!doctype html><p>x</p>",
      "def f(x):\n  return x",
      "```python\nprint(1)\n```",
      "",
      " \n",
    ]) {
      expect(await failureOf(text)).toMatch(/JavaScript|is empty/);
    }
  });

  test("arithmetic with the names of commands is a script", async () => {
    expect(await resultOf("const ls = 6, la = 2, tmp = 2; ls -la /tmp")).toBe(5);
  });

  test("name the limit of a text that is too long", async () => {
    const result = await read("'éééé'", 8);
    expect(result.ok ? "" : result.failure).toMatchObject({
      code: "source_too_large",
      message: "script.js: has 10 bytes; the limit is 8 (sourceBytes)",
    });
  });

  test("refuse imports with their place", async () => {
    for (const text of [
      "import x from 'node:fs';\n1",
      "export * from './y.js'",
      "import y from './y.js';\nconst n: number = y;",
    ])
      expect(await failureOf(text)).toMatch(/^script\.js:1:\d+: cannot import/);
  });

  test("do not choose among several code blocks", async () => {
    expect(await failureOf("```js\n1\n```\n```js\n2\n```")).toMatch(/2 code blocks/);
  });

  test("of code that is nested too deep end as an answer", async () => {
    expect((await read(`${"(".repeat(50_000)}1${")".repeat(50_000)}`)).ok).toBe(false);
  });
});

test("stacks of JavaScript are mapped exactly, behind insertions too", async () => {
  const result = await read("Prose\n```js\nconst a = 1;\nboom(a)\n```");
  if (!result.ok) throw new Error(result.failure.message);
  const lines = result.script.text.split("\n");
  const line = lines.findIndex((text) => text.includes("boom")) + 1;
  const column = (lines[line - 1]?.indexOf("boom") ?? 0) + 1;
  expect(line).toBe(4);
  expect(result.script.map.toSource(line, column)).toEqual({ file: "script.js", line: 4, column: 1 });
  expect(result.script.map.toSource(1, 3)).toBeUndefined();
});

test("the same text is read once", async () => {
  const once = await read("return 'cached'");
  expect(await read("return 'cached'")).toBe(once);
});
