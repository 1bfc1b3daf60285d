/** Precedence of file rules against examples and against a slow model. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mountsOf, pathComponents, rulesAt, strongestAccess } from "./fs-policy.js";
import type { FsAccess, FsRule } from "./grant-types.js";

const accesses: readonly FsAccess[] = ["read", "write", "protect", "deny"];

describe("strongestAccess", () => {
  test.each<[FsAccess[], string]>([
    [[], ""],
    [["read"], "r"],
    [["write"], "rw"],
    [["protect"], "p"],
    [["deny"], "d"],
    [["read", "write"], "rw"],
    [["read", "protect"], "rp"],
    [["write", "protect"], "rp"],
    [["read", "write", "protect"], "rp"],
    [["read", "deny"], "d"],
    [["write", "deny"], "d"],
    [["write", "protect", "deny"], "pd"],
  ])("%j is %j", (kinds, letters) => {
    expect(strongestAccess(kinds)).toEqual({
      read: letters.includes("r"),
      write: letters.includes("w"),
      protected: letters.includes("p"),
      denied: letters.includes("d"),
    });
  });

  test("does not depend on the order, nor on how often a rule stands there", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...accesses), { maxLength: 8 }), (kinds) => {
        const sorted = [...new Set(kinds)].sort();
        expect(strongestAccess(kinds)).toEqual(strongestAccess(sorted));
      }),
    );
  });

  test("adding deny takes everything, adding protect takes writing only, nothing else takes anything", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...accesses), { maxLength: 6 }),
        fc.constantFrom(...accesses),
        (kinds, more) => {
          const before = strongestAccess(kinds);
          const after = strongestAccess([...kinds, more]);
          if (more === "deny") expect([after.read, after.write]).toEqual([false, false]);
          else if (more === "protect") expect([after.read, after.write]).toEqual([before.read, false]);
          else expect([after.read || !before.read, after.write || !before.write]).toEqual([true, true]);
        },
      ),
    );
  });
});

describe("rulesAt", () => {
  const rules: readonly FsRule[] = [
    { mount: "data", access: "read" },
    { mount: "data", path: "logs", access: "write" },
    { mount: "data", path: "logs/private", access: "deny" },
    { mount: "other", path: "logs", access: "write" },
  ];

  test.each<[string, FsAccess[]]>([
    ["", ["read"]],
    ["a", ["read"]],
    ["logs", ["read", "write"]],
    ["logs/a/b", ["read", "write"]],
    ["logs-old", ["read"]],
    ["logs/private", ["read", "write", "deny"]],
    ["logs/private/x", ["read", "write", "deny"]],
    ["logs/privateer", ["read", "write"]],
    ["a/logs/private", ["read"]],
    ["Logs", ["read"]],
  ])("at %j", (path, expected) => {
    expect(rulesAt(rules, "data", path).map((rule) => rule.access)).toEqual(expected);
  });

  test.each(["/logs", "logs/", "a//b", ".", "..", "a/../b", "./a", "a/.", "a\0b", "/"])(
    "no rule holds at %j, which is not in normal form",
    (path) => {
      expect(rulesAt(rules, "data", path)).toEqual([]);
      expect(pathComponents(path)).toBeUndefined();
    },
  );

  test("no rule holds in a mount that none names", () => {
    expect(rulesAt(rules, "Data", "logs")).toEqual([]);
  });

  test("a rule that the schema would refuse is an error, not a rule that is skipped", () => {
    expect(() => rulesAt([{ mount: "data", path: "../x", access: "deny" }], "data", "x")).toThrow(RangeError);
  });

  test("decides as a slow model does", () => {
    const path = fc
      .array(fc.constantFrom("a", "b", "ab"), { maxLength: 4 })
      .map((components) => components.join("/"));
    const rule: fc.Arbitrary<FsRule> = fc.record(
      { mount: fc.constantFrom("m", "n"), path, access: fc.constantFrom(...accesses) },
      { requiredKeys: ["mount", "access"] },
    );
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 8 }), path, (list, at) => {
        const decision = strongestAccess(rulesAt(list, "m", at).map((found) => found.access));
        // The model walks from the mount to the path and looks for a rule with exactly that root at every step.
        let chain: string[] = [];
        const met: FsAccess[] = [];
        for (const step of ["", ...at.split("/").filter((name) => name !== "")]) {
          chain = step === "" ? [] : [...chain, step];
          for (const each of list) {
            if (each.mount === "m" && (each.path ?? "") === chain.join("/")) met.push(each.access);
          }
        }
        const rank = Math.max(-1, ...met.map((kind) => accesses.indexOf(kind)));
        const readable = met.some((kind) => kind === "read" || kind === "write");
        expect(decision.read).toBe(readable && rank < 3);
        expect(decision.write).toBe(rank === 1);
      }),
      { numRuns: 3000 },
    );
  });
});

test("mountsOf names each mount once, sorted", () => {
  expect(
    mountsOf([
      { mount: "b", access: "deny" },
      { mount: "a", access: "read" },
      { mount: "b", path: "x", access: "write" },
    ]),
  ).toEqual(["a", "b"]);
  expect(mountsOf([])).toEqual([]);
});
