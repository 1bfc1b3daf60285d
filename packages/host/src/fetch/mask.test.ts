// What masking takes out of texts and bodies, against a slow model.
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maskBytes, maskText } from "./mask.js";

const bytes = (text: string): Uint8Array => Buffer.from(text, "latin1");
const shown = (masked: Uint8Array): string => Buffer.from(masked).toString("latin1");

describe("masking", () => {
  test.each([
    ["nothing there", ["hunter2"], "nothing there"],
    ["token=hunter2;", ["hunter2"], "token=***;"],
    ["hunter2", ["hunter2"], "***"],
    ["hunter2hunter2", ["hunter2"], "***"],
    ["a hunter2 b hunter2", ["hunter2"], "a *** b ***"],
    ["Hunter2 hunter", ["hunter2"], "Hunter2 hunter"],
    ["abcabcabca", ["abca"], "***"],
    ["one key, one keyring", ["key", "keyring"], "one ***, one ***"],
    ["abcdef", ["abcd", "cdef"], "***"],
    ["second first", ["first", "second"], "*** ***"],
    ["a b", ["a", "b"], "* *"],
    ["a\0b hunter2", ["hunter2"], "a\0b ***"],
    ["text", [], "text"],
    ["text", [""], "text"],
  ])("%j without %j is %j", (text, values, masked) => {
    expect(maskText(text, values)).toBe(masked);
    expect(shown(maskBytes(bytes(text), values))).toBe(masked);
  });

  test("leaves the same bytes when there is nothing to take out", () => {
    const body = bytes("nothing");
    expect(maskBytes(body, ["hunter2"])).toBe(body);
  });

  test("sees only the bytes of a view", () => {
    const whole = bytes("hunter2 and hunter2");
    expect(shown(maskBytes(whole.subarray(2, 11), ["hunter2"]))).toBe("nter2 and");
  });

  test("leaves in place exactly the characters that no occurrence covers", () => {
    const letter = fc.constantFrom("a", "b", "c");
    const text = fc.array(letter, { maxLength: 40 }).map((letters) => letters.join(""));
    const value = fc.array(letter, { minLength: 3, maxLength: 5 }).map((letters) => letters.join(""));
    fc.assert(
      fc.property(text, fc.array(value, { maxLength: 3 }), (plain, values) => {
        const covered = [...plain].map((_, at) =>
          values.some((secret) => {
            for (let start = at - secret.length + 1; start <= at; start++) {
              if (start >= 0 && plain.startsWith(secret, start)) return true;
            }
            return false;
          }),
        );
        const model = [...plain].map((character, at) => (covered[at] ? "*" : character)).join("");
        const masked = maskText(plain, values);
        expect(masked).toBe(model.replaceAll(/\*+/g, "***"));
        expect(shown(maskBytes(bytes(plain), values))).toBe(masked);
      }),
    );
  });
});
