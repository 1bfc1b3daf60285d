// Tests of the policy format: what is accepted, how it is normalised, and that everything else is refused with its
// path and a remedy.
import { readFileSync } from "node:fs";
import { limitTable } from "@flowcell/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONTROLS } from "./controls.js";
import {
  defaultPolicy,
  formatProblem,
  isNormalisedPolicy,
  parsePolicy,
  policyFromJson,
  policyToJson,
  requiredControls,
  type SandboxPolicy,
} from "./policy.js";

function accepted(value: unknown): SandboxPolicy {
  const result = parsePolicy(value);
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join("; "));
  return result.policy;
}

function refusal(value: unknown): string {
  const result = parsePolicy(value);
  if (result.ok) throw new Error("the policy was accepted");
  return result.problems.map(formatProblem).join("\n");
}

describe("what a policy means when it says little", () => {
  test("the shortest policy denies everything and requires Landlock", () => {
    const policy = accepted({ version: 1 });
    expect(policy.filesystem.mode).toBe("denied");
    expect(policy.network).toEqual({ mode: "denied", defaultAction: "deny", rules: [] });
    expect(policy.environment).toEqual({ inherit: false, variables: {} });
    expect(policy.isolation).toBe("process");
    expect(policy.landlock).toBe("required");
    expect(policy.limits.processes).toBe(1);
  });

  test("the default policies are valid, differ in their ceilings, and never make Landlock optional by themselves", () => {
    const flow = defaultPolicy("flow");
    const codemode = defaultPolicy("codemode");
    expect(isNormalisedPolicy(flow)).toBe(true);
    expect(flow.landlock).toBe("required");
    expect(codemode.landlock).toBe("required");
    expect(codemode.limits.cpuMs).toBeGreaterThan(flow.limits.cpuMs);
  });

  test("only the operator's frightening switch makes Landlock optional", () => {
    expect(defaultPolicy("flow", { dangerLandlockOptional: true }).landlock).toBe("dangerOptional");
    expect(defaultPolicy("flow", { dangerLandlockOptional: false }).landlock).toBe("required");
    expect(refusal({ version: 1, landlock: "optional" })).toContain("is not one of required, dangerOptional");
  });

  test("the replay allowance follows the processor time when it is not named", () => {
    expect(accepted({ version: 1, limits: { cpuMs: 700 } }).limits.replayCpuMs).toBe(2_400);
    expect(accepted({ version: 1, limits: { cpuMs: 700, replayCpuMs: 5 } }).limits.replayCpuMs).toBe(5);
  });

  test("a default policy with a limit out of range is a mistake of the program", () => {
    expect(() => defaultPolicy("flow", { limits: { heapBytes: 1 } })).toThrow(
      /limits\.heapBytes: 1 is below/,
    );
  });
});

describe("what is refused", () => {
  test.each<[string, unknown, string]>([
    ["no version", {}, "version: is missing; this build reads version 1"],
    ["a later version", { version: 2 }, "version: 2 is not known; this build reads version 1"],
    [
      "an unknown key at the top",
      { version: 1, landlok: "required" },
      'landlok: unknown key; did you mean "landlock"?',
    ],
    [
      "an unknown key below",
      { version: 1, limits: { cpuMS: 5 } },
      'limits.cpuMS: unknown key; did you mean "cpuMs"?',
    ],
    ["a key like nothing known", { version: 1, colour: 1 }, "colour: unknown key; known: version, isolation"],
    [
      "a switch of another name",
      { version: 1, dangerLandlockOptional: true },
      'mean "landlock": "dangerOptional"?',
    ],
    ["an unknown mode", { version: 1, network: { mode: "filterd" } }, 'did you mean "filtered"?'],
    [
      "a wrong type",
      { version: 1, limits: { cpuMs: "1000" } },
      'limits.cpuMs: expected number, found "1000"',
    ],
    ["a fraction", { version: 1, limits: { cpuMs: 1.5 } }, "limits.cpuMs: expected int, found 1.5"],
    ["zero", { version: 1, limits: { cpuMs: 0 } }, "limits.cpuMs: 0 is below the smallest allowed value 1"],
    [
      "too much heap",
      { version: 1, limits: { heapBytes: limitTable.heapBytes.most + 1 } },
      "above the largest allowed value",
    ],
    ["an unknown control", { version: 1, require: ["thread_denny"] }, 'did you mean "thread_deny"?'],
    [
      "a relative path",
      { version: 1, filesystem: { mode: "restricted", readable: ["a/b"] } },
      "filesystem.readable.[0]",
    ],
    [
      "an empty path",
      { version: 1, filesystem: { mode: "restricted", denied: [""] } },
      "is not an absolute path",
    ],
    [
      "paths that would be ignored",
      { version: 1, filesystem: { writable: ["/a"] } },
      'while filesystem.mode is "denied"',
    ],
    [
      "rules that would be ignored",
      { version: 1, network: { rules: [{ action: "allow", host: "*" }] } },
      "rules need",
    ],
    [
      "an allow that would be ignored",
      { version: 1, network: { defaultAction: "allow" } },
      "network.defaultAction",
    ],
    ["a URL as a host", filtered("https://example.com/x"), "is not a host pattern"],
    ["a host with a port", filtered("example.com:80"), "is not a host pattern"],
    ["a star in the middle", filtered("a.*.example.com"), "is not a host pattern"],
    ["a variable without a name", { version: 1, environment: { variables: { "": "x" } } }, "is not a name"],
    ["a variable with =", { version: 1, environment: { variables: { "A=B": "x" } } }, "is not a name"],
    ["a value with a zero byte", { version: 1, environment: { variables: { A: "a\0b" } } }, "zero byte"],
    ["null", null, "expected object, found null"],
    ["a list", [], "expected object, found []"],
  ])("%s", (_name, value, part) => {
    expect(refusal(value)).toContain(part);
  });

  test("an unknown key is refused at every level of the format", () => {
    const places = ["filesystem", "network", "environment", "limits"];
    fc.assert(
      fc.property(
        fc.constantFrom("", ...places),
        fc.string({ minLength: 1, maxLength: 12 }),
        (place, key) => {
          const valid: Record<string, unknown> = { version: 1 };
          const inner = place === "" ? valid : {};
          if (place !== "") valid[place] = inner;
          fc.pre(!Object.hasOwn(JSON.parse(policyToJson(defaultPolicy("flow")))[place] ?? {}, key));
          fc.pre(!Object.hasOwn(JSON.parse(policyToJson(defaultPolicy("flow"))), key));
          Object.defineProperty(inner, key, { value: 1, enumerable: true });
          expect(parsePolicy(valid).ok).toBe(false);
        },
      ),
    );
  });

  test("no value whatever makes the reader throw", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, maxDepth: 4 }), (value) => {
        expect(typeof parsePolicy(value).ok).toBe("boolean");
      }),
    );
  });
});

function filtered(host: string): unknown {
  return { version: 1, network: { mode: "filtered", rules: [{ action: "allow", host }] } };
}

describe("JSON", () => {
  test("what is written is read back equal", () => {
    for (const policy of [
      defaultPolicy("flow"),
      defaultPolicy("codemode", { dangerLandlockOptional: true }),
    ]) {
      const back = policyFromJson(policyToJson(policy));
      expect(back).toEqual({ ok: true, policy });
    }
  });

  test.each([
    ['{"version":1,"landlock":"dangerOptional","landlock":"required"}', "landlock"],
    ['{"version":1,"limits":{"cpuMs":1,"heapBytes":2097152,"cpuMs":2}}', "limits.cpuMs"],
    ['{"version":1,"network":{"mode":"filtered","rules":[{"action":"deny","host":"a","host":"b"}]}}', "host"],
    ['{"version":1,"limits":{"cpuMs":1,"\\u0063puMs":2}}', "limits.cpuMs"],
  ])("a key written twice is refused: %s", (text, path) => {
    const result = policyFromJson(text);
    expect(result.ok).toBe(false);
    if (!result.ok) expect(result.problems[0]?.path).toContain(path);
  });

  test("equal keys in different objects are no duplicates", () => {
    const text =
      '{"version":1,"network":{"mode":"filtered","rules":[{"action":"deny","host":"a"},{"action":"deny","host":"\\"{,"}]}}';
    const result = policyFromJson(text);
    expect(result.ok).toBe(false);
    if (!result.ok) expect(result.problems[0]?.message).toContain("is not a host pattern");
  });

  test.each([
    ["not JSON", "{version:1}"],
    ["two values", '{"version":1}{}'],
    ["a prototype", '{"version":1,"__proto__":{"landlock":"dangerOptional"}}'],
    ["a text above the bound", `{"version":1,"metadata":{"a":"${"x".repeat(70_000)}"}}`],
  ])("%s is refused", (_name, text) => {
    expect(policyFromJson(text).ok).toBe(false);
  });
});

test("the policy that the documentation shows is what the shortest policy means", () => {
  const document = readFileSync(new URL("../../../docs/CONFINEMENT.md", import.meta.url), "utf8");
  const shown = /```json\n([^`]+)```/.exec(document)?.[1] ?? "";
  expect(policyFromJson(shown)).toEqual({ ok: true, policy: accepted({ version: 1 }) });
});

describe("normalisation", () => {
  test("paths lose dots, doubled slashes and repetition, and keep their order", () => {
    const policy = accepted({
      version: 1,
      filesystem: { mode: "restricted", readable: ["/b//c/../d/", "/a", "/b/d", "/./a", "/../.."] },
    });
    expect(policy.filesystem.readable).toEqual(["/b/d", "/a", "/"]);
  });

  test("hosts become lower case, their rules keep their order", () => {
    const policy = accepted({
      version: 1,
      network: {
        mode: "filtered",
        rules: [
          { action: "allow", host: "*.Example.COM", port: 443 },
          { action: "deny", host: "**.example.com" },
          { action: "allow", host: "2001:DB8::1" },
          { action: "allow", host: "10.0.0.1" },
        ],
      },
    });
    expect(policy.network.rules.map((rule) => rule.host)).toEqual([
      "*.example.com",
      "**.example.com",
      "2001:db8::1",
      "10.0.0.1",
    ]);
    expect(policy.network.rules[1]).not.toHaveProperty("port");
  });

  test("normalising twice changes nothing", () => {
    const path = fc
      .array(fc.constantFrom("a", "b", ".", "..", ""), { maxLength: 6 })
      .map((parts) => `/${parts.join("/")}`);
    fc.assert(
      fc.property(fc.array(path, { maxLength: 5 }), (readable) => {
        const once = accepted({ version: 1, filesystem: { mode: "restricted", readable } });
        const twice = accepted(JSON.parse(policyToJson(once)));
        expect(twice).toEqual(once);
      }),
    );
  });

  test("a policy cannot be changed after it was checked", () => {
    const policy = accepted({
      version: 1,
      network: { mode: "filtered", rules: [{ action: "deny", host: "*" }] },
    });
    expect(() => Object.assign(policy, { landlock: "dangerOptional" })).toThrow(TypeError);
    expect(() => Object.assign(policy.limits, { cpuMs: 1e9 })).toThrow(TypeError);
    expect(() => Object.assign(policy.network.rules[0] ?? {}, { action: "allow" })).toThrow(TypeError);
  });

  test("a copy of a checked policy is checked again", () => {
    const copy = { ...defaultPolicy("flow"), isolation: "none" };
    expect(isNormalisedPolicy(copy)).toBe(false);
    expect(refusal(copy)).toContain("isolation");
  });
});

describe("required controls", () => {
  test("a confined process implies its controls, each with its reason", () => {
    const required = new Map(
      requiredControls(defaultPolicy("flow")).map((one) => [one.control, one.because]),
    );
    expect(required.get("process_deny")).toBe("policy.isolation process");
    expect(required.get("network_deny")).toBe("policy.network.mode denied");
    expect(required.get("filesystem_deny")).toBe("policy.filesystem.mode denied");
    expect(required.has("network_filter")).toBe(false);
    expect(required.has("identity_dropped")).toBe(false);
  });

  test("a filtered network requires both the denial and the filter", () => {
    const required = requiredControls(accepted(filtered("*"))).map((one) => one.control);
    expect(required).toContain("network_deny");
    expect(required).toContain("network_filter");
  });

  test("every control can be required by name, once, in the order of the list", () => {
    const policy = accepted({ version: 1, require: [...CONTROLS].reverse().concat(CONTROLS) });
    expect(requiredControls(policy).map((one) => one.control)).toEqual([...CONTROLS]);
  });
});
