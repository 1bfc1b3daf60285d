/** Any text stays inside its comment, says nothing to the compiler and hides nothing. */

import { describe, expect, test } from "vitest";
import { docComment, indented, quotedText } from "./doc-comment.js";
import { checkFlow } from "./testing/type-check.js";

describe("a comment", () => {
  test.each([
    ["One line.", "/** One line. */\n"],
    ["Two\r\n\n lines ", "/**\n * Two\n *\n *  lines\n */\n"],
    ["", ""],
    [" \n ", ""],
    ["a */ b", "/** a *\\/ b */\n"],
    ["a *\u200b/ b", "/** a *\\/ b */\n"],
    ["\u202etxt\u0000\u001b[2J\ud800", "/** txt[2J */\n"],
    ["@ts-ignore", "/** @ ts-ignore */\n"],
    ["a\u{e0041}\ufe01b", "/** ab */\n"],
  ])("of %j is %j", (text, comment) => {
    expect(docComment(text)).toBe(comment);
  });

  test("cannot switch the compiler off, end early or begin a declaration", async () => {
    const hostile = [
      "@ts-ignore",
      "@ts-expect-error",
      "@TS-IGNORE",
      "*/ let a = 1; /*",
      "\u2028*/ let a = 1;",
      "@ts-nocheck",
    ];
    const text = hostile.map((each, index) => `${docComment(each)}const x${index}: number = "a";\n`).join("");
    const errors = await checkFlow({ "flow.ts": `export {};\n${text}` });
    expect(errors.filter((each) => each.includes("TS2322"))).toHaveLength(hostile.length);
    expect(errors).toHaveLength(hostile.length);
  });
});

test("indentation leaves empty lines empty", () => {
  expect(indented("a\n\nb\n")).toBe("  a\n\n  b\n");
});

test("a literal is the text, with everything in sight", () => {
  const text = 'a\u2028"*/\u202e\u{e0041}\ufe01\ud800';
  expect(quotedText(text)).toBe('"a\\u2028\\"*/\\u202e\\udb40\\udc41\\ufe01\\ud800"');
  expect(JSON.parse(quotedText(text))).toBe(text);
});
