// Tests of the Welcome judgement: one wrong fact, any fact, any other value, is refused by its name.
import { isWelcomeFact, type WelcomeFacts, welcomeFields } from "@flowcell/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compile } from "./compile.js";
import { isControl } from "./controls.js";
import { FAKE_WORKER, fakeHost, fakeSources, fakeUse } from "./fake-host.js";
import { requirePlan } from "./plan.js";
import { defaultPolicy } from "./policy.js";
import { probe } from "./probe.js";
import { FACT_NAMES, FACT_ROWS, judgeWelcome } from "./welcome.js";

function expectedUnder(user: "root" | "ordinary"): WelcomeFacts {
  const result = compile(defaultPolicy("flow"), probe(fakeSources(fakeHost(user))), FAKE_WORKER);
  if (!result.ok) throw new Error(JSON.stringify(result.failure));
  return requirePlan(result.plan, fakeUse(user)).expected;
}

/** Values of the same form as a right one, as a lying worker would choose them. */
function valuesLike(right: string | number | boolean): fc.Arbitrary<string | number | boolean> {
  switch (typeof right) {
    case "boolean":
      return fc.boolean();
    case "number":
      return fc.oneof(
        fc.integer({ min: -1, max: 12 }),
        fc.integer({ min: -1, max: Number.MAX_SAFE_INTEGER }),
      );
    case "string":
      return fc.oneof(
        fc.constantFrom("linux", "macos", "windows", "x64", "arm64"),
        fc
          .array(fc.constantFrom(..."0123456789abcdef"), { minLength: right.length, maxLength: right.length })
          .map((digits) => digits.join("")),
      );
  }
}

describe.each(["root", "ordinary"] as const)("under a parent that is %s", (user) => {
  const expected = expectedUnder(user);

  test("the expected Welcome is accepted, and every fact of it could stand on the wire", () => {
    expect(judgeWelcome(expected, { ...expected })).toEqual([]);
    for (const { name, kind } of welcomeFields) expect(isWelcomeFact(kind, expected[name])).toBe(true);
  });

  test.each(welcomeFields)(
    "any other $name is refused by that name, and nothing else is blamed",
    ({ name }) => {
      fc.assert(
        fc.property(valuesLike(expected[name]), (value) => {
          fc.pre(!Object.is(value, expected[name]));
          const refused = judgeWelcome(expected, { ...expected, [name]: value } as WelcomeFacts); // a lie on purpose
          expect(refused.map((one) => one.fact)).toEqual([name]);
          expect(refused[0]?.message).toContain(`the worker's ${name} is `);
          expect(refused[0]?.remedy).toBe(FACT_ROWS[name].remedy);
        }),
      );
    },
  );

  test.each(welcomeFields)("the least other $name is refused", ({ name }) => {
    const right = expected[name];
    const near: unknown[] =
      typeof right === "boolean"
        ? [!right]
        : typeof right === "number"
          ? [right + 1, right - 1, -0, String(right)]
          : [
              right.toUpperCase(),
              `${right} `,
              right.slice(1),
              right.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")),
            ];
    for (const value of near.filter((one) => !Object.is(one, right))) {
      const refused = judgeWelcome(expected, { ...expected, [name]: value } as WelcomeFacts); // a lie on purpose
      expect(refused.map((one) => one.fact)).toEqual([name]);
    }
  });

  test.each(welcomeFields)("a Welcome without $name is refused", ({ name }) => {
    const { [name]: _left, ...rest } = expected;
    expect(judgeWelcome(expected, rest as WelcomeFacts).map((one) => one.fact)).toEqual([name]); // incomplete on purpose
  });

  test("all wrong facts are named, in the order of the wire", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.constantFrom(...FACT_NAMES), { minLength: 1 }), (names) => {
        const wrong = { ...expected, ...Object.fromEntries(names.map((name) => [name, "wrong"])) };
        const found = judgeWelcome(expected, wrong as WelcomeFacts).map((one) => one.fact); // a lie on purpose
        expect(found).toEqual(FACT_NAMES.filter((name) => names.includes(name)));
      }),
    );
  });
});

test("every field of the wire has a rule, a control and a remedy", () => {
  expect([...FACT_NAMES]).toEqual(welcomeFields.map((field) => field.name));
  for (const name of FACT_NAMES) {
    const row = FACT_ROWS[name];
    expect(row.rule).not.toBe("");
    expect(row.remedy).not.toBe("");
    expect(row.controls.length).toBeGreaterThan(0);
    for (const control of row.controls) expect(isControl(control)).toBe(true);
  }
});

test("what a worker says is shown bounded", () => {
  const expected = expectedUnder("root");
  const [refused] = judgeWelcome(expected, { ...expected, buildId: "x".repeat(100_000) });
  expect(refused?.message.length).toBeLessThan(400);
});
