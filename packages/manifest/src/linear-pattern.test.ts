/** Patterns against the platform's engine, which decides what is right, and against texts that would make it hang. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compilePattern } from "./linear-pattern.js";

function matches(pattern: string, text: string): boolean {
  const compiled = compilePattern(pattern);
  if (!compiled.ok) throw new Error(compiled.message);
  return compiled.pattern.test(text);
}

/** The platform (V8) finds \B between the halves of a surrogate pair, where the language has no position. */
function platformErrs(pattern: string, text: string): boolean {
  return pattern.includes("\\B") && /[\u{10000}-\u{10ffff}]/u.test(text);
}

describe("patterns", () => {
  test.each([
    ["", "anything"],
    ["a", "xay"],
    ["^a$", "a"],
    ["^a$", "ab"],
    ["^$", ""],
    ["a|b|", "c"],
    ["^(?:a|bc)+$", "abcbca"],
    ["^(?<year>\\d{4})-(\\d{2})$", "2024-05"],
    ["^[^a-c\\]]+$", "d]"],
    ["^[^a-c\\]]+$", "def"],
    ["[]", "a"],
    ["[^]", "\n"],
    [".", "\n"],
    ["^.$", "💧"],
    ["^\\u{1f4a7}{2}$", "💧💧"],
    ["^\\ud83d\\udca7$", "💧"],
    ["^[\\ud83d\\udca7x]$", "💧"],
    ["^\\p{Lu}\\P{Lu}$", "Äb"],
    ["\\bword\\b", "a word here"],
    ["\\Bord", "word"],
    ["^\\x41\\u0042\\cJ$", "AB\n"],
    ["^a{2,3}$", "aaaa"],
    ["^a{2,3}?$", "aaa"],
    ["^a{0}$", ""],
    ["^(a{0,2}){2}$", "aaaa"],
    ["^(?:(?:a*)*)*$", "aaaa"],
    ["^(?:|a)+$", "aaa"],
    ["a$b", "ab"],
    ["^^a$$", "a"],
    ["(?:^|,)x(?:,|$)", "a,x,b"],
    ["^[\\w.+-]+@[\\w-]+\\.[\\w.]+$", "me@example.com"],
    ["^\\-?$", "-"],
    ["\\/", "a/b"],
  ])("%s on %j is what the platform says", (pattern, text) => {
    let expected: boolean;
    try {
      expected = new RegExp(pattern, "u").test(text);
    } catch {
      expect(compilePattern(pattern).ok).toBe(false);
      return;
    }
    expect(matches(pattern, text)).toBe(expected);
  });

  test("agrees with the platform on patterns made at random", () => {
    const atom = fc.constantFrom(
      "a",
      "b",
      ".",
      "[ab]",
      "[^a]",
      "\\d",
      "\\w",
      "\\b",
      "^",
      "$",
      "\\n",
      "💧",
      "\\B",
    );
    const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
      pattern: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        atom,
        fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => a + b),
        fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => `(?:${a}|${b})`),
        fc
          .tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "{0,1}?"))
          .map(([a, times]) => `(${a})${times}`),
      ),
    }));
    const text = fc.string({ unit: fc.constantFrom("a", "b", "1", " ", "\n", "💧"), maxLength: 8 });
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 1, maxLength: 6 }), (source, texts) => {
        const expression = new RegExp(source, "u");
        const compiled = compilePattern(source);
        expect(compiled.ok).toBe(true);
        for (const each of texts) {
          if (platformErrs(source, each)) continue;
          expect(compiled.ok && compiled.pattern.test(each), `${source} on ${JSON.stringify(each)}`).toBe(
            expression.test(each),
          );
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test.each([
    ["^(a+)+$", `${"a".repeat(5_000)}!`],
    ["^(a|aa)*$", `${"a".repeat(5_000)}!`],
    ["^(?:[a-z]+-?)*[a-z]+$", `${"a".repeat(5_000)}!`],
    ["(.*)*(.*)*(.*)*x$", "y".repeat(5_000)],
    ["^((((a?){20}){20}))$", "a".repeat(500)],
    ["a".repeat(500), `${"a".repeat(499)}b`.repeat(10)],
  ])("work for %.30s is bounded by pattern times text", (pattern, text) => {
    const compiled = compilePattern(pattern);
    let steps = 0;
    const matched =
      compiled.ok &&
      compiled.pattern.test(text, (more) => {
        steps += more;
      });
    expect(matched).toBe(false);
    expect(steps).toBeGreaterThan(0);
    expect(steps).toBeLessThan(2 * 2_002 * (text.length + 2));
  });

  test("who is told of the work can stop it", () => {
    const compiled = compilePattern("x$");
    const stop = new Error("enough");
    expect(
      () =>
        compiled.ok &&
        compiled.pattern.test("y".repeat(1_000), () => {
          throw stop;
        }),
    ).toThrow(stop);
  });

  test.each([
    ["(?=a)", "looks ahead"],
    ["(?!a)", "looks ahead"],
    ["(?<=a)b", "looks ahead or behind"],
    ["(?<!a)b", "looks ahead or behind"],
    ["(a)\\1", "refers back"],
    ["(?<n>a)\\k<n>", "refers back"],
    ["(", "no regular expression"],
    ["a)", "no regular expression"],
    ["[z-a]", "no regular expression"],
    ["a**", "no regular expression"],
    ["\\q", "no regular expression"],
    ["a{2", "no regular expression"],
    ["a{1001}", "more than 1000 times"],
    ["(?:a{100}){100}", "more than 2000 steps"],
    ["(?:(?:(?:a{10}){10}){10}){10}", "more than 2000 steps"],
    ["(?:[ab]{0,900}){3}", "more than 2000 steps"],
    ["(".repeat(41) + ")".repeat(41), "levels of groups"],
    ["a".repeat(1_001), "longer than 1000"],
  ])("%.40s is refused: %s", (pattern, reason) => {
    const compiled = compilePattern(pattern);
    expect(compiled.ok).toBe(false);
    expect(compiled.ok ? "" : compiled.message).toContain(reason);
  });

  test("no pattern makes it throw", () => {
    const unit = fc.constantFrom(..."ab()[]{}|*+?^$\\.,-:<=!>0123uxkpPdwbB💧".split(/(?:)/u));
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 14 }), fc.string({ unit, maxLength: 6 }), (pattern, text) => {
        const compiled = compilePattern(pattern);
        if (!compiled.ok || platformErrs(pattern, text)) return;
        expect(compiled.pattern.test(text)).toBe(new RegExp(pattern, "u").test(text));
      }),
      { numRuns: 5_000 },
    );
  });
});
