// What the parent sees of real processes: one that says the right Welcome and is not confined as it says is refused by
// what the kernel says about it. As root and as an ordinary user.
//
// The processes are a probe of the test build that leaves one step of confinement out, and an ordinary program. Each is
// launched like a worker, and judged once by its own word and once by a lie.
import { execFileSync } from "node:child_process";
import { afterAll, describe, expect, it } from "vitest";
import { product } from "../confinement/harness.js";
import { SandboxStage, type ScriptUser, scriptUsers } from "./stage.js";

const stage = new SandboxStage(
  ["launcher", "probe-deviating", "filter-dump"],
  ["lib/launcher.so", "test/probe-deviating"],
);
afterAll(() => stage.remove());

const identity = execFileSync(product("bin/filter-dump"), ["--identity"], { encoding: "utf8" });

/** What `acceptWorker` says about a process, as far as the tests look at it. */
interface Verdict {
  readonly ok: boolean;
  readonly reason: string;
  readonly details: readonly string[];
  /** Observations that speak against the process. */
  readonly against: readonly string[];
  readonly skipped: readonly string[];
}

/**
 * Launches a program that stays alive, and judges it by what it says about itself, or by the Welcome that the plan
 * expects: the best lie there is.
 */
async function judge(
  user: ScriptUser,
  program: string,
  args: readonly string[],
  honest = false,
): Promise<Verdict> {
  const script = `
    const identity = ${identity};
    const path = ${JSON.stringify(program)};
    const worker = { ok: true, workerPath: path, build: {
      format: 1, buildId: "0".repeat(64), fingerprint: "0".repeat(64), os: "linux", arch: process.arch,
      worker: { file: "bin/worker", bytes: 1, sha256: "0".repeat(64) }, seccomp: identity.seccomp,
      landlockAbiMax: identity.landlockAbiMax, memory: { imageBytes: 1048576, engineStackBytes: 67108864 } } };
    const host = sandbox.probe(sandbox.hostSources(launcherPath));
    const compiled = sandbox.compile(sandbox.defaultPolicy("flow"), host, worker);
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.failure));
    const state = sandbox.launchState(compiled.plan);
    const child = new sandbox.Child(
      sandbox.launchWorker({ path, args: ${JSON.stringify(args)}, limits: state.limits, launcherPath }), 4096);
    const started = await child.until((output) => ${args.length === 0} || output.includes("\\n"), 5000);
    if (!started) throw new Error("it did not come through: " + sandbox.endOf((await child.finish(5000)).exit));
    const said = child.output.toString().trimEnd();
    const header = sandbox.untrusted(${honest} ? said : sandbox.welcomeHeader(state.expected));
    const verdict = sandbox.acceptWorker(compiled.plan, child.worker.pid, header);
    child.closeInput();
    await child.finish(5000);
    const rows = verdict.observation;
    return {
      ok: verdict.ok,
      reason: verdict.ok ? "" : verdict.refusal.reason,
      details: verdict.ok ? [] : verdict.refusal.details,
      against: rows.filter((row) => row.state === "contradicts" || row.state === "unreadable").map((row) => row.name),
      skipped: rows.filter((row) => row.state === "skipped").map((row) => row.name),
    };`;
  return (await stage.run(user, script)) as Verdict; // the script returns just that
}

/** A probe that confines itself with the worker's code, says what a worker would, and waits for its input. */
function deviating(user: ScriptUser, deviation: string | null, honest = false): Promise<Verdict> {
  const option = deviation === null ? [] : [`--test-deviation=${deviation}`];
  return judge(user, stage.product("test/probe-deviating"), ["--facts", ...option], honest);
}

type DeviationCase = readonly [string, readonly string[]];

function onlyOf(wanted: boolean, row: DeviationCase): readonly DeviationCase[] {
  return wanted ? [row] : [];
}

describe.each(scriptUsers())("as $name", (user) => {
  it("a process with every step of confinement is accepted by its own word, which is the control of all that follows", async () => {
    const verdict = await deviating(user, null, true);
    expect(verdict).toMatchObject({ ok: true, details: [], against: [] });
    expect(verdict.skipped).toEqual(
      user.isRoot ? ["memory_unreadable"] : ["mappings", "descriptors", "environment", "executable"],
    );
  });

  it.each<DeviationCase>([
    ["skip-seccomp", ["seccompSha256", "seccompLength", "seccompTsync"]],
    ["skip-landlock", ["landlockAbi"]],
    ["skip-mdwe", ["mdwe"]],
    ["skip-limits", ["limitNofile", "limitFsize", "limitNproc"]],
    // Giving up root makes a process not dumpable by itself, so that only an ordinary user's lacks the step.
    ...onlyOf(!user.isRoot, ["skip-dumpable", ["dumpable"]]),
  ])("%s is refused by its own word, in every fact that it concerns", async (deviation, facts) => {
    const verdict = await deviating(user, deviation, true);
    expect(verdict).toMatchObject({ ok: false, reason: "welcome_refused", against: [] });
    expect(verdict.details.map((detail) => /^the worker's (\w+) is/.exec(detail)?.[1])).toEqual(facts);
  });

  it("an ordinary program that says the right Welcome is refused, for everything that it has not", async () => {
    const verdict = await judge(user, "/bin/cat", []);
    expect(verdict).toMatchObject({ ok: false, reason: "observation_failed" });
    const missing = [
      "no_new_privs",
      "seccomp_mode",
      "seccomp_filters",
      "limit_fsize",
      "limit_nproc",
      "limit_nofile",
    ];
    // The program belongs to the user that runs it: root's has root's identity, another's is dumpable and readable.
    const more = user.isRoot ? ["user", "group", "capabilities"] : ["dumpable", "memory_unreadable"];
    expect(verdict.against).toEqual(expect.arrayContaining([...missing, ...more]));
  });

  it.each<DeviationCase>([
    ["skip-seccomp", ["seccomp_filters", "seccomp_mode"]],
    ["skip-limits", ["limit_fsize", "limit_nofile", "limit_nproc"]],
    ...onlyOf(!user.isRoot, ["skip-dumpable", ["dumpable", "memory_unreadable"]]),
  ])("%s is seen, whatever the process says", async (deviation, rows) => {
    const verdict = await deviating(user, deviation);
    expect(verdict).toMatchObject({ ok: false, reason: "observation_failed" });
    expect([...verdict.against].sort()).toEqual(rows);
  });

  it.each(["skip-landlock", "skip-mdwe"])(
    "%s is not visible to any parent: for these there is the worker's word, its build and the escape probes",
    async (deviation) => {
      expect(await deviating(user, deviation)).toMatchObject({ ok: true, against: [] });
    },
  );
});
