/** How paths of scripts are taken apart; what they may not be is tried on every function in test/host-fs. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { isTemporaryName, parseScriptPath, scriptText } from "./script-path.js";

test("takes a path apart at its slashes and puts it together again", () => {
  expect(parseScriptPath("fs.read", "/data")).toEqual({ text: "/data", mount: "data", names: [] });
  expect(parseScriptPath("fs.read", "/data/a b/ü")).toMatchObject({ mount: "data", names: ["a b", "ü"] });
  expect(scriptText("data", ["a", "b"])).toBe("/data/a/b");
  expect(scriptText("data", [])).toBe("/data");
});

test("whatever text it takes is its components again, none of which leads up, elsewhere or to a temporary file", () => {
  const part = fc.oneof(
    fc.string(),
    fc.constantFrom(".", "..", "", "a", "data", `.flowcell-${"0".repeat(32)}`),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
      const text = `/${parts.join("/")}`;
      let path: ReturnType<typeof parseScriptPath>;
      try {
        path = parseScriptPath("fs.read", text);
      } catch (error) {
        expect(error).toMatchObject({ code: "invalid_arguments" });
        return;
      }
      expect(scriptText(path.mount, path.names)).toBe(text);
      for (const name of [path.mount, ...path.names]) {
        expect(["", ".", ".."]).not.toContain(name);
        expect(/[\0/]/.test(name) || isTemporaryName(name)).toBe(false);
      }
    }),
  );
});

test("a refusal shows a bounded part of a long text", () => {
  const refuse = (): unknown => parseScriptPath("fs.read", `x${"y".repeat(100_000)}`);
  expect(refuse).toThrow(/^fs\.read: "xyyy/);
  try {
    refuse();
  } catch (error) {
    expect(error instanceof Error && error.message.length).toBeLessThan(500);
  }
});
