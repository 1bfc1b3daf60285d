/** Limits as callers and operators ask for them. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type LimitName,
  type Limits,
  limitCeilings,
  limitNames,
  limitTable,
  parseLimitOption,
  parseLimits,
  profileLimits,
} from "./limits.js";

const flow = profileLimits("flow");

function messageOf(asked: unknown, ceilings?: Limits): string {
  const result = parseLimits(asked, flow, ceilings);
  return result.ok ? "" : result.message;
}

describe("parseLimits", () => {
  it("gives the defaults to who asks for nothing", () => {
    expect(parseLimits(undefined, flow)).toEqual({ ok: true, limits: flow });
    expect(parseLimits({ cpuMs: undefined }, flow)).toEqual({ ok: true, limits: flow });
  });

  it("takes any whole number within a limit's range, for any set of limits", () => {
    const asked = fc.record(
      Object.fromEntries(
        limitNames.map((name) => [
          name,
          fc.integer({ min: limitTable[name].least, max: limitTable[name].most }),
        ]),
      ),
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(asked, (limits) => {
        expect(parseLimits(limits, flow)).toEqual({ ok: true, limits: { ...flow, ...limits } });
      }),
    );
  });

  it("refuses whatever is not a whole number in range, and names the limit and the range", () => {
    for (const name of limitNames) {
      const { least, most, unit } = limitTable[name];
      for (const value of [
        least - 1,
        most + 1,
        least + 0.5,
        Number.NaN,
        Number.POSITIVE_INFINITY,
        "1",
        null,
        {},
        true,
      ]) {
        const message = messageOf({ [name]: value });
        expect(message).toContain(`limit ${name} must be a whole number from ${least} to ${most} (${unit})`);
      }
    }
  });

  it("holds a caller to the operator's ceiling, and lowers defaults to it", () => {
    const ceilings = { ...limitCeilings, cpuMs: 500 };
    expect(messageOf({ cpuMs: 501 }, ceilings)).toContain("from 1 to 500");
    expect(parseLimits({}, flow, ceilings)).toEqual({ ok: true, limits: { ...flow, cpuMs: 500 } });
  });

  it("refuses an unknown name with the nearest known one", () => {
    expect(messageOf({ cpuMS: 1 })).toBe('unknown limit "cpuMS": did you mean cpuMs (milliseconds)?');
    expect(messageOf({ heapByte: 1 })).toContain("did you mean heapBytes (bytes)?");
    expect(messageOf({ completelyElse: 1 })).toContain(`the limits are ${limitNames.join(", ")}`);
    expect(messageOf({ ["x".repeat(1000)]: 1 }).length).toBeLessThan(400);
  });

  it("knows other runtimes' names for the same thing, and does not accept them", () => {
    const names: [string, LimitName][] = [
      ["timeout", "wallMs"],
      ["timeoutMs", "wallMs"],
      ["memoryLimit", "heapBytes"],
      ["memoryLimitBytes", "heapBytes"],
      ["max_output_size", "resultBytes"],
      ["maxStackSize", "stackBytes"],
    ];
    for (const [foreign, name] of names)
      expect(messageOf({ [foreign]: 1 })).toContain(`did you mean ${name} `);
  });

  it("refuses what is no object of limits", () => {
    for (const asked of [null, 1, "cpuMs=1", [], [1]])
      expect(messageOf(asked)).toContain("must be an object");
  });

  it("is not led astray by names of Object.prototype", () => {
    for (const name of ["constructor", "toString", "hasOwnProperty"]) {
      expect(messageOf({ [name]: 1 })).toContain("unknown limit");
    }
    expect(messageOf(JSON.parse('{"__proto__": 1}'))).toContain("unknown limit");
  });
});

describe("parseLimitOption", () => {
  it("takes name=value", () => {
    expect(parseLimitOption("cpuMs=500")).toEqual({ ok: true, name: "cpuMs", value: 500 });
  });

  it("refuses anything else with what it should be", () => {
    for (const [text, part] of [
      ["cpuMs", "not name=value"],
      ["=5", "not name=value"],
      ["", "not name=value"],
      ["cpuMs=", 'not the text ""'],
      ["cpuMs=1s", 'not the text "1s"'],
      ["cpuMs=1e3", "not the text"],
      ["cpuMs=-1", "not the text"],
      ["cpuMs=0", "from 1 to"],
      ["cpuMs=99999999999999999999", "not the text"],
      ["cpums=5", "did you mean cpuMs"],
    ] as const) {
      const result = parseLimitOption(text);
      expect(result.ok ? "" : result.message).toContain(part);
    }
  });
});

describe("the profiles", () => {
  it("name every limit, within its range", () => {
    for (const profile of ["flow", "codemode"] as const) {
      const limits = profileLimits(profile);
      expect(Object.keys(limits).sort()).toEqual([...limitNames].sort());
      expect(parseLimits(limits, limits)).toEqual({ ok: true, limits });
    }
  });

  it("fit the fixed structs: every limit that C reads is below 2^32", () => {
    for (const name of ["heapBytes", "stackBytes", "resultBytes"] as const) {
      expect(limitTable[name].most).toBeLessThan(2 ** 32);
    }
  });
});
