// flowcell's doctor on this machine, with the real worker and probe, as root and as an ordinary user: everything it
// looks at is fine here, and it notices when something is not.
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DoctorReport } from "../../packages/sandbox/src/doctor.js";
import { SandboxStage, type ScriptUser, scriptUsers } from "./stage.js";

const stage = new SandboxStage(
  ["launcher", "worker-json", "probe", "probe-deviating", "worker-deviating"],
  [
    "lib/launcher.so",
    "bin/worker",
    "bin/probe",
    "test/probe-deviating",
    "test/worker-deviating",
    "worker.json",
  ],
);
afterAll(() => stage.remove());

interface Examination {
  readonly report: DoctorReport;
  readonly text: string;
}

/** Runs doctor with some options in place of the usual, which are code. */
async function examine(user: ScriptUser, options = ""): Promise<Examination> {
  const script = `
    const report = await sandbox.runDoctor({
      buildFolder: stage, launcherPath, probePath: stage + "/bin/probe", ${options} });
    return { report, text: sandbox.renderDoctor(report, { details: true }) };`;
  return (await stage.run(user, script)) as Examination; // the script returns just that
}

describe.each(scriptUsers())("as $name", (user) => {
  let report: DoctorReport;
  let text = "";

  beforeAll(async () => {
    ({ report, text } = await examine(user));
  });

  it("finds no problem on this machine", () => {
    expect(report.problems).toEqual([]);
    expect(report.ok).toBe(true);
    expect(text).toContain("No problem was found.");
  });

  it("sees a worker of this build accepted, with every fact as planned and nothing contradicted, and end in good order", () => {
    expect(report.worker).toMatchObject({ accepted: true, refusal: null, startFailure: null, end: "exit 0" });
    expect(report.worker?.facts.filter((fact) => !fact.agrees)).toEqual([]);
    expect(report.worker?.facts.length).toBe(31);
    const states = new Set(report.worker?.observation.map((row) => row.state));
    expect([...states].sort()).toEqual(["agrees", "skipped"]);
  });

  it("has more than a hundred escapes refused that succeed unconfined, and none that got through", () => {
    const count = (verdict: string): number => report.probes.filter((one) => one.verdict === verdict).length;
    expect(count("refused")).toBeGreaterThan(100);
    expect(count("escaped")).toBe(0);
    expect(count("inconclusive")).toBe(0);
  });

  it("shows a worker that ends with its parent, beside a process that does not", () => {
    expect(report.live.find((check) => check.name === "parent_death")).toMatchObject({ state: "shown" });
  });

  it("gives each required control the level that was earned, and the tier that follows", () => {
    const levels = new Map(
      report.controls.filter((one) => one.required).map((one) => [one.control, one.level]),
    );
    const below = [...levels].filter(([, level]) => level < 3).map(([control]) => control);
    // The compartment is no refusal of the operating system; an ordinary parent cannot read a worker's environment.
    expect(below).toEqual(user.isRoot ? ["engine_compartment"] : ["engine_compartment", "environment_empty"]);
    expect(below.map((control) => levels.get(control))).toEqual(below.map(() => 2));
    expect(report.tier).toBe(2);
  });

  it("says of an ordinary user's worker that its identity is only partly dropped", () => {
    const identity = report.controls.find((one) => one.control === "identity_dropped");
    expect(identity?.state).toBe(user.isRoot ? "enforced" : "partial");
    expect(identity?.required).toBe(false);
  });
});

describe("doctor notices", () => {
  const [user] = scriptUsers();
  if (user === undefined) throw new Error("there is always one user");

  it("a worker whose filter is not the plan's: refused by the name of the fact, and its probes are not counted", async () => {
    const json = readFileSync(stage.product("worker.json"), "utf8");
    const build = JSON.parse(json);
    const other = { sha256: "0".repeat(64), length: 1 };
    try {
      writeFileSync(
        stage.product("worker.json"),
        JSON.stringify({ ...build, seccomp: { x64: other, arm64: other } }),
      );
      const { report, text } = await examine(user);
      expect(report.worker).toMatchObject({
        accepted: false,
        refusal: { reason: "welcome_refused", fact: "seccompSha256" },
        observation: [],
      });
      expect(text).toContain("WRONG FACT seccompSha256");
      expect(report.problems.join()).toContain(
        "confines itself in another way than a worker (seccompSha256)",
      );
      expect(report.probes).toEqual([]);
      for (const one of report.controls) expect(one.level).toBeLessThan(2);
      expect(report.tier).toBe(3);
    } finally {
      writeFileSync(stage.product("worker.json"), json);
    }
  });

  it("a probe that is not there or is no program", async () => {
    for (const path of ["/nowhere", "/worker.json"]) {
      const { report } = await examine(user, `probePath: stage + "${path}"`);
      expect(report.problems).toEqual([expect.stringContaining("The escape probes cannot be run")]);
      expect(report.worker?.accepted).toBe(true);
    }
  });

  it("a worker binary that is not the one that was built", async () => {
    const original = readFileSync(stage.product("bin/worker"));
    const changed = Buffer.from(original);
    changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
    try {
      writeFileSync(stage.product("bin/worker"), changed);
      const { report } = await examine(user, "probes: false");
      expect(report.build.digestMatches).toBe(false);
      expect(report.problems.join()).toContain("not the one that was built");
    } finally {
      writeFileSync(stage.product("bin/worker"), original);
    }
  });

  it("a missing build, and starts nothing", async () => {
    const { report, text } = await examine(user, `buildFolder: stage + "/nowhere"`);
    expect(report.worker).toBeNull();
    expect(report.probes).toEqual([]);
    expect(report.blockers.map((blocker) => blocker.code)).toEqual(["worker_not_built"]);
    expect(text).toContain("npm run build");
  });

  it("a policy that cannot be held here, and starts nothing", async () => {
    const { report } = await examine(user, `policy: { version: 1, require: ["network_filter"] }`);
    expect(report.gate).toBe("controls");
    expect(report.worker).toBeNull();
    expect(report.probes).toEqual([]);
    expect(report.ok).toBe(false);
  });
});
