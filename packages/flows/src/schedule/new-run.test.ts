// From a wish to the row of a run.
import { parseManifest } from "@flowcell/manifest";
import { encodeValue, profileLimits } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import { planOf, type VersionPlan } from "../catalog/version-plan.js";
import { concurrencyKey, newRun } from "./new-run.js";

function plan(manifest: object = {}, problem: string | null = null): VersionPlan {
  const parsed = parseManifest(JSON.stringify({ format: 1, id: "f", ...manifest }));
  if (!parsed.ok) throw new Error("no manifest");
  const limits = { ...profileLimits("flow"), inputBytes: 1000 };
  return planOf("f", "h", parsed.manifest, limits, problem);
}

const wish = {
  input: { kind: "value", value: { a: 1 } },
  trigger: { kind: "manual", by: "me" },
  deduplicationKey: null,
  now: 1000,
} as const;

describe("a new run", () => {
  test("has an unguessable id and seed, the manifest's deadline and the time of its making", () => {
    const [one, other] = [newRun(plan({ deadlineMs: 5000 }), wish), newRun(plan(), wish)];
    expect(one).toMatchObject({
      flow: "f",
      versionHash: "h",
      deadlineMs: 5000,
      createdAt: 1000,
      guestStartMs: 1000,
      notBefore: 1000,
      attempt: 1,
      concurrencyKey: "",
    });
    expect(one.runId).toMatch(/^run_[\w-]{22}$/);
    expect(one.seed).toMatch(/^[0-9a-f]{64}$/);
    expect(other.runId).not.toBe(one.runId);
    expect(other.seed).not.toBe(one.seed);
  });

  test("is not made of an input that cannot be sent, is too large, or is not what the manifest declares", () => {
    const withInput = (value: unknown) =>
      newRun(plan({ input: { type: "object" } }), { ...wish, input: { kind: "value", value } });
    expect(() => withInput({ f: () => 1 })).toThrow(/input: .*f/);
    expect(() => withInput({ text: "x".repeat(2000) })).toThrow(/inputBytes 1000/);
    expect(() => withInput("text")).toThrow(/input must be an object/);
    const encoded = encodeValue("text");
    expect(() =>
      newRun(plan({ input: { type: "object" } }), { ...wish, input: { kind: "encoded", encoded } }),
    ).toThrow(/must be an object/);
  });

  test("is not made of a version that cannot run here", () => {
    expect(() => newRun(plan({}, "ceilings"), wish)).toThrow("ceilings");
  });
});

describe("the concurrency key", () => {
  const input = { a: { "x/y": [10, { b: "é" }], "~": true }, n: null };

  test("is the value at the pointer, as JSON text", () => {
    expect(concurrencyKey("/a/x~1y/1/b", input)).toBe('"é"');
    expect(concurrencyKey("/a/~0", input)).toBe("true");
    expect(concurrencyKey("/n", input)).toBe("null");
    expect(concurrencyKey("/a/x~1y", input)).toBe('[10,{"b":"é"}]');
  });

  test("is empty without a pointer and where nothing is, inherited properties included", () => {
    expect(concurrencyKey(undefined, input)).toBe("");
    for (const pointer of ["/b", "/a/x~1y/2", "/a/x~1y/01", "/a/x~1y/length", "/constructor", "/n/x"]) {
      expect(concurrencyKey(pointer, input), pointer).toBe("");
    }
  });

  test("tells values apart that are long, and is short", () => {
    const [one, other] = ["1", "2"].map((end) => concurrencyKey("/k", { k: "x".repeat(5000) + end }));
    expect(one).not.toBe(other);
    expect(one?.length).toBeLessThan(100);
  });
});
