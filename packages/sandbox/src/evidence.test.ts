// Tests of evidence and tiers: every level needs all it says, and nothing that is not enforced has any.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { CONTROLS, type Control } from "./controls.js";
import { type EvidenceInput, judgeEvidence, judgeTier, type Tier, UNIT_TESTS } from "./evidence.js";
import type { ControlStatus } from "./linux-controls.js";
import { OBSERVATION_RULES, OBSERVATIONS, type Observation, type ObservationState } from "./observe.js";

const ENFORCED: readonly ControlStatus[] = CONTROLS.map((control) => ({
  control,
  state: "enforced",
  layers: ["seccomp"],
  missing: "",
}));

function seen(states: Partial<Record<(typeof OBSERVATIONS)[number], ObservationState>> = {}): Observation {
  return OBSERVATIONS.map((name) => ({
    name,
    state: states[name] ?? "agrees",
    expected: "",
    found: "",
    note: "",
  }));
}

function level(control: Control, change: Partial<EvidenceInput> = {}): number {
  const input = {
    controls: ENFORCED,
    welcomeAccepted: true,
    observation: seen(),
    probes: new Map<Control, readonly string[]>(),
    broken: new Set<Control>(),
    ...change,
  };
  return judgeEvidence(input).find((one) => one.control === control)?.level ?? -1;
}

/** Level of a control about which nothing is known but its unit tests. */
function least(control: Control): number {
  return UNIT_TESTS[control].length > 0 ? 1 : 0;
}

test("attested and seen is level 2; without Welcome, or without being seen, it is not", () => {
  expect(level("syscall_filter")).toBe(2);
  expect(level("syscall_filter", { welcomeAccepted: false })).toBe(least("syscall_filter"));
  expect(
    level("memory_limit", { observation: seen({ limit_data: "skipped", limit_stack: "skipped" }) }),
  ).toBe(least("memory_limit"));
});

test("what the parent does itself needs no observation, but an accepted Welcome", () => {
  expect(level("environment_empty", { observation: seen({ environment: "skipped" }) })).toBe(2);
  expect(level("environment_empty", { observation: [], welcomeAccepted: false })).toBe(
    least("environment_empty"),
  );
});

test("a refused live probe is level 3", () => {
  expect(level("network_deny", { probes: new Map([["network_deny", ["socket-tcp"]]]) })).toBe(3);
});

test("a control of which one act got through has no level, however many were refused", () => {
  const probes = new Map<Control, readonly string[]>([["network_deny", ["socket-tcp", "socket-udp"]]]);
  expect(level("network_deny", { probes, broken: new Set<Control>(["network_deny"]) })).toBe(0);
  expect(level("network_deny", { probes, broken: new Set<Control>(["process_deny"]) })).toBe(3);
});

test("a control that is partial or absent has no level, whatever was attested, seen or probed", () => {
  const probes = new Map<Control, readonly string[]>(CONTROLS.map((control) => [control, ["x"]]));
  for (const state of ["partial", "absent"] as const) {
    const controls = ENFORCED.map((status) => ({ ...status, state, missing: "something" }));
    for (const one of judgeEvidence({
      controls,
      welcomeAccepted: true,
      observation: seen(),
      probes,
      broken: new Set(),
    })) {
      expect(one.level).toBe(0);
    }
  }
  for (const one of judgeEvidence({
    controls: [],
    welcomeAccepted: true,
    observation: seen(),
    probes,
    broken: new Set(),
  })) {
    expect(one.level).toBe(0);
  }
});

describe("a contradiction or an unreadable row takes the level of every control that it speaks for", () => {
  test.each(OBSERVATIONS)("%s", (name) => {
    for (const state of ["contradicts", "unreadable"] as const) {
      for (const control of OBSERVATION_RULES[name].controls) {
        const probes = new Map([[control, ["x"]]]);
        expect(level(control, { observation: seen({ [name]: state }), probes })).toBe(0);
      }
    }
  });
});

test("the tier is that of the weakest required control", () => {
  const tier = (levels: readonly (0 | 1 | 2 | 3)[]): Tier => {
    const evidence = levels.map((one, index) => ({
      control: CONTROLS[index] ?? "syscall_filter",
      level: one,
      attested: [],
      observed: [],
      setByParent: "",
      probes: [],
    }));
    return judgeTier(
      evidence.map((one) => ({ control: one.control, because: "test" })),
      evidence,
    );
  };
  expect(tier([3, 3, 3])).toBe(1);
  expect(tier([3, 2, 3])).toBe(2);
  expect(tier([2])).toBe(2);
  expect(tier([3, 1, 3])).toBe(3);
  expect(tier([0])).toBe(3);
  expect(tier([])).toBe(3);
  expect(judgeTier([{ control: "cpu_limit", because: "test" }], [])).toBe(3);
});

test("every test that is named as evidence exists", () => {
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  for (const path of Object.values(UNIT_TESTS).flat()) expect(existsSync(`${root}${path}`), path).toBe(true);
});
