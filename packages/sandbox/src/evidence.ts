// Evidence: how well each control is proven, and the tier that follows. Derived, never declared.
//
// Called by the acceptance of a worker (what a run's result carries) and by doctor (which adds live probes).
// Levels, each for one control on this host:
//   0  declared only, or not enforced here
//   1  unit-tested: the code that holds it has tests (the files stand in `UNIT_TESTS`; a test keeps the list true)
//   2  attested by the worker, and seen or set by the parent itself
//   3  refused live by this host's operating system, while the same act succeeds without confinement
// Tiers: 1 when every required control is at level 3, 2 when every one is at level 2 or above, 3 otherwise.
// A control that a plan does not hold is at level 0 whatever was probed: nothing is reported that is not enforced.
import type { WelcomeFieldName } from "@flowcell/protocol";
import { CONTROLS, type Control } from "./controls.js";
import type { ControlStatus } from "./linux-controls.js";
import { OBSERVATION_RULES, type Observation } from "./observe.js";
import type { RequiredControl } from "./policy.js";
import { FACT_NAMES, FACT_ROWS } from "./welcome.js";

export type EvidenceLevel = 0 | 1 | 2 | 3;
export type Tier = 1 | 2 | 3;

/** How well one control is proven. */
export interface ControlEvidence {
  readonly control: Control;
  readonly level: EvidenceLevel;
  /** Facts of an accepted Welcome that speak for it. */
  readonly attested: readonly WelcomeFieldName[];
  /** What the parent saw, by name. */
  readonly observed: readonly string[];
  /** What the parent itself did for it before the worker ran; empty when it does nothing. */
  readonly setByParent: string;
  /** Live probes that were refused here and succeeded unconfined. */
  readonly probes: readonly string[];
}

const FILTER_TESTS: readonly string[] = [
  "test/confinement/filter.test.ts",
  "test/confinement/probes.test.ts",
];

/** Tests of the code that holds each control. Paths of this repository; a test keeps them true. */
export const UNIT_TESTS: Readonly<Record<Control, readonly string[]>> = {
  engine_compartment: [],
  syscall_filter: [...FILTER_TESTS, "worker-native/src/confine/confine_test.c"],
  filesystem_deny: FILTER_TESTS,
  network_deny: FILTER_TESTS,
  network_filter: [],
  process_deny: FILTER_TESTS,
  thread_deny: FILTER_TESTS,
  exec_memory_deny: [...FILTER_TESTS, "test/confinement/refusals.test.ts"],
  signal_deny: FILTER_TESTS,
  ptrace_deny: [...FILTER_TESTS, "test/confinement/observed.test.ts"],
  descriptor_closed: ["test/native/launch.test.ts", "test/confinement/refusals.test.ts"],
  environment_empty: ["test/native/launch.test.ts"],
  memory_limit: ["test/native/launch.test.ts", "test/confinement/probes.test.ts"],
  cpu_limit: ["test/native/launch.test.ts", "test/confinement/probes.test.ts"],
  parent_death: ["test/confinement/observed.test.ts", "test/pool/lifecycle.test.ts"],
  privacy_disclaim: [],
  identity_dropped: ["test/confinement/refusals.test.ts", "test/confinement/observed.test.ts"],
};

/**
 * What the parent does itself, before the worker's first instruction. It needs no observation: the launcher reports a
 * step that failed and nothing runs then.
 */
const SET_BY_PARENT: Partial<Readonly<Record<Control, string>>> = {
  engine_compartment: "executes the worker of the plan by its path",
  descriptor_closed: "passes three pipe ends and closes every other descriptor before the worker is executed",
  environment_empty: "executes the worker with an empty environment",
  parent_death: "arms the parent-death signal before the worker is executed",
};

/** Controls that no fact names: their step ends the worker when it fails, so the Welcome of that build attests them. */
const ATTESTED_BY_BUILD: readonly Control[] = ["parent_death"];

/** What is known about one worker or one host. */
export interface EvidenceInput {
  readonly controls: readonly ControlStatus[];
  /** Whether a Welcome was accepted in full. */
  readonly welcomeAccepted: boolean;
  readonly observation: Observation;
  /** Names of live probes with their control succeeding, by control. */
  readonly probes: ReadonlyMap<Control, readonly string[]>;
  /** Controls of which one act got through, here and now. One outweighs any number that did not. */
  readonly broken: ReadonlySet<Control>;
}

/** The evidence for every control, in the order of `CONTROLS`. */
export function judgeEvidence(input: EvidenceInput): readonly ControlEvidence[] {
  return CONTROLS.map((control) => {
    const status = input.controls.find((one) => one.control === control);
    if (status === undefined || status.state === "absent") {
      return { control, level: 0, attested: [], observed: [], setByParent: "", probes: [] };
    }
    const attested = input.welcomeAccepted ? attestingFacts(control) : [];
    const rows = input.observation.filter((row) => OBSERVATION_RULES[row.name].controls.includes(control));
    const refuted =
      input.broken.has(control) ||
      rows.some((row) => row.state === "contradicts" || row.state === "unreadable");
    const observed = rows.filter((row) => row.state === "agrees").map((row) => row.name);
    const setByParent = SET_BY_PARENT[control] ?? "";
    const probes = input.probes.get(control) ?? [];
    const evidence = { control, attested, observed, setByParent, probes };
    // Partly held is not held: what is missing cannot be proven.
    if (status.state === "partial" || refuted) return { ...evidence, level: 0 };
    if (probes.length > 0) return { ...evidence, level: 3 };
    const seen = observed.length > 0 || (input.welcomeAccepted && setByParent !== "");
    if (attested.length > 0 && seen) return { ...evidence, level: 2 };
    return { ...evidence, level: UNIT_TESTS[control].length > 0 ? 1 : 0 };
  });
}

function attestingFacts(control: Control): readonly WelcomeFieldName[] {
  const named = FACT_NAMES.filter((fact) => FACT_ROWS[fact].controls.includes(control));
  return named.length === 0 && ATTESTED_BY_BUILD.includes(control) ? ["buildId"] : named;
}

/** The tier of a plan's required controls under this evidence. */
export function judgeTier(required: readonly RequiredControl[], evidence: readonly ControlEvidence[]): Tier {
  let lowest: EvidenceLevel = 3;
  for (const { control } of required) {
    const level = evidence.find((one) => one.control === control)?.level ?? 0;
    if (level < lowest) lowest = level;
  }
  // Nothing required proves nothing.
  if (required.length === 0) return 3;
  return lowest === 3 ? 1 : lowest === 2 ? 2 : 3;
}
