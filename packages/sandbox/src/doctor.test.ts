// Tests of the doctor's report: what it may say, and that it says no more. The real thing runs where the native parts
// are built (test/doctor).
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { compile } from "./compile.js";
import { CONTROLS } from "./controls.js";
import { assemble, type DoctorReport, type Findings, type WorkerReport } from "./doctor.js";
import { renderDoctor } from "./doctor-text.js";
import type { ProbeResult } from "./escape-probes.js";
import { FAKE_WORKER, fakeHost, fakeSources } from "./fake-host.js";
import { OBSERVATIONS } from "./observe.js";
import { defaultPolicy } from "./policy.js";
import { hostSources, probe } from "./probe.js";

const host = probe({ ...fakeSources(fakeHost("root")), proc: bootOf(hostSources().proc) });

// The fake host's parent is root, whoever runs the tests.
beforeEach(() => {
  vi.spyOn(process, "geteuid").mockReturnValue(0);
  vi.spyOn(process, "getegid").mockReturnValue(0);
});
afterEach(() => void vi.restoreAllMocks());

/** The fake host on the real boot, to which plans are bound. */
function bootOf(real: ReturnType<typeof hostSources>["proc"]): ReturnType<typeof hostSources>["proc"] {
  const fake = fakeSources(fakeHost("root")).proc;
  return {
    ...fake,
    text: (path, max) => (path.endsWith("boot_id") ? real.text(path, max) : fake.text(path, max)),
  };
}

const accepted: WorkerReport = {
  accepted: true,
  confinement: null,
  refusal: null,
  startFailure: null,
  facts: [],
  observation: OBSERVATIONS.map((name) => ({ name, state: "agrees", expected: "", found: "", note: "" })),
  welcomeMs: 1,
  judgedMs: 0.1,
  end: "exit 0",
};

function probeOf(
  proves: string,
  verdict: ProbeResult["verdict"],
  name = `${proves}-${verdict}`,
): ProbeResult {
  return {
    name,
    proves,
    control: "ok",
    landlock: "ok",
    confined: "SIGSYS",
    verdict,
    unconfined: { ready: true, outcome: "ok" },
    worker: { ready: true, outcome: verdict === "escaped" ? "ok" : "SIGSYS" },
  };
}

function report(change: Partial<Findings> = {}): DoctorReport {
  return assemble({
    result: compile(defaultPolicy("flow"), host, FAKE_WORKER),
    host,
    build: FAKE_WORKER,
    digestMatches: true,
    worker: accepted,
    probes: CONTROLS.map((control) => probeOf(control, "refused")),
    live: [],
    problems: [],
    ...change,
  });
}

describe.runIf(process.platform === "linux")("the report", () => {
  test("reaches tier 1 when every required control was shown live, and JSON keeps all of it", () => {
    const full = report();
    expect(full.tier).toBe(1);
    expect(full.ok).toBe(true);
    expect(JSON.parse(JSON.stringify(full))).toEqual(full);
    expect(full.controls.map((one) => one.control)).toEqual([...CONTROLS]);
  });

  test("an act that got through takes its control's level, whatever else was refused", () => {
    const probes = [
      ...CONTROLS.map((control) => probeOf(control, "refused")),
      probeOf("network_deny", "escaped"),
    ];
    const bad = report({ probes });
    expect(bad.controls.find((one) => one.control === "network_deny")?.level).toBe(0);
    expect(bad.tier).toBe(3);
    expect(renderDoctor(bad)).toContain("NOT REFUSED");
  });

  test("acts that fail unconfined as well, or did not take place, prove nothing", () => {
    for (const verdict of ["refused_only", "inconclusive", "unavailable", "allowed"] as const) {
      const weak = report({ probes: CONTROLS.map((control) => probeOf(control, verdict)) });
      expect(weak.tier).toBe(2);
      for (const one of weak.controls) expect(one.level).toBeLessThan(3);
    }
  });

  test("a live check that failed takes its control's level", () => {
    const bad = report({
      live: [
        {
          name: "parent_death",
          control: "parent_death",
          state: "failed",
          worker: "alive",
          unconfined: "lives on",
        },
      ],
    });
    expect(bad.controls.find((one) => one.control === "parent_death")?.level).toBe(0);
    expect(bad.tier).toBe(3);
  });

  test("without a plan no control is held and nothing is printed as enforced", () => {
    const none = report({
      result: {
        ok: false,
        failure: {
          gate: "controls",
          blockers: [
            {
              control: "filesystem_deny",
              code: "landlock_missing",
              message: "No Landlock.",
              remedy: "use another kernel",
            },
          ],
        },
      },
      worker: null,
      problems: ["no plan"],
    });
    expect(none.ok).toBe(false);
    for (const one of none.controls) expect([one.state, one.level]).toEqual(["absent", 0]);
    const text = renderDoctor(none, { details: true });
    expect(text).not.toContain("enforced");
    expect(text).toContain("No Landlock.");
    expect(text).toContain("use another kernel");
  });

  test("a worker that was refused leaves no evidence above the probes", () => {
    const refused = report({ worker: { ...accepted, accepted: false, observation: [] }, probes: [] });
    for (const one of refused.controls) expect(one.level).toBeLessThan(2);
    expect(refused.tier).toBe(3);
  });

  test("on a system without a backend it says so, and nothing else", () => {
    const other = probe({ ...fakeSources(fakeHost("root")), platform: "darwin" });
    const result = compile(defaultPolicy("flow"), other, FAKE_WORKER);
    const text = renderDoctor(report({ host: other, result, worker: null, probes: [], problems: ["x"] }));
    expect(text).toContain("cannot confine a worker on macos");
    expect(text).not.toContain("seccomp");
  });
});

describe.runIf(process.platform === "linux")("the text", () => {
  test("names every control, its evidence, and what is not proven; in plain characters", () => {
    const text = renderDoctor(report());
    for (const control of CONTROLS) expect(text).toContain(control);
    expect(text).toContain("3 shown live");
    expect(text).toContain("Not proven by this report");
    expect(text).toContain("No problem was found.");
    expect(text.includes("\x1b")).toBe(false);
    expect(text.endsWith("\n")).toBe(true);
  });

  test("what nobody saw is said to be set by the parent, not seen", () => {
    const unseen = OBSERVATIONS.map((name) => ({
      name,
      state: name === "executable" ? ("skipped" as const) : ("agrees" as const),
      expected: "",
      found: "",
      note: "",
    }));
    const evidence = (text: string): string =>
      text.split("\n").find((line) => /^ {2}engine_compartment {2}/.test(line)) ?? "";
    expect(evidence(renderDoctor(report({ probes: [] })))).toContain("2 attested and seen");
    const ordinary = report({ probes: [], worker: { ...accepted, observation: unseen } });
    expect(evidence(renderDoctor(ordinary))).toContain("2 attested and set by the parent");
  });

  test("details add what each control's evidence does not prove", () => {
    expect(renderDoctor(report())).not.toContain("does not prove that");
    expect(renderDoctor(report(), { details: true })).toContain("does not prove that");
  });

  test("problems come last, each on a line", () => {
    const lines = renderDoctor(report({ problems: ["first", "second"] }))
      .trimEnd()
      .split("\n");
    expect(lines.slice(-4, -1)).toEqual(["2 problems:", "- first", "- second"]);
  });
});
