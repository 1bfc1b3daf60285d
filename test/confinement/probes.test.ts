// Every act of the probe's table (worker-native/src/probe/table_linux.c) in all three ways, as root and as an ordinary
// user. The confined attempt alone proves nothing: an act that would have failed anyway looks the same.

import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  build,
  product,
  type Run,
  type RunResult,
  runAll,
  runOne,
  Stage,
  type TestUser,
  testUsers,
} from "./harness.js";

interface Act {
  readonly name: string;
  readonly proves: string;
  readonly control: string;
  readonly landlock: string;
  readonly confined: string;
}

type Mode = "control" | "landlock" | "confined";

let stage: Stage;
let probe: string;
let acts: readonly Act[];
let abi: number;

beforeAll(() => {
  build("probe", "run-piped");
  stage = new Stage();
  probe = stage.copy(product("bin/probe"), "probe");
  acts = execFileSync(probe, ["--list"], { encoding: "utf8" })
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const facts = runOne(product("test/run-piped"), { options: ["--input=x"], program: [probe, "--facts"] });
  abi = Number(JSON.parse(facts.stdout).landlockAbi);
});

afterAll(() => stage.remove());

/** The limits that the limit acts are about: a quarter of a gibibyte and 2.6 seconds of CPU are what they ask for. */
function limits(act: Act, mode: Mode): string[] {
  return mode === "confined" && act.name.startsWith("limit-")
    ? [`--limit-data=${128 * 1024 * 1024}`, "--limit-cpu=1"]
    : [];
}

function attempt(act: Act, mode: Mode, user: TestUser): Run {
  return {
    options: [`--scratch=${stage.scratch}`, user.option, ...limits(act, mode)],
    program: [probe, `--${mode}`, act.name],
  };
}

/** What came of an attempt, in the words of the table. */
function outcome(result: RunResult): string {
  const [first, ...rest] = result.stdout.split("\n");
  if (first?.startsWith("unavailable ")) return first;
  if (first !== "ready") return `no attempt: exit ${result.exit} ${result.signal} ${result.stdout}`;
  if (result.core) return `${result.signal} with a core dump`;
  if (result.signal !== "") return result.signal;
  const said = rest.filter((line) => line !== "");
  return said[0] ?? `exit ${result.exit}`;
}

/** "ok<6:EPERM" is ok below ABI 6 and EPERM from there on. */
function expected(words: string): string[] {
  const byAbi = /^(.*)<(\d+):(.*)$/.exec(words);
  const chosen = byAbi === null ? words : abi < Number(byAbi[2]) ? byAbi[1] : byAbi[3];
  return (chosen ?? "").split("|");
}

/** Acts whose outcome is not as listed, as "name: outcome, expected …". */
function surprises(mode: Mode, user: TestUser): string[] {
  const results = runAll(
    product("test/run-piped"),
    acts.map((act) => attempt(act, mode, user)),
  );
  return acts.flatMap((act, index) => {
    const result = results[index];
    const got = result === undefined ? "no result" : outcome(result);
    if (got.startsWith("unavailable ")) return unavailable(act, got);
    return expected(act[mode]).includes(got) ? [] : [`${act.name}: ${got}, expected ${act[mode]}`];
  });
}

/** What a kernel may be built without; everything else must be there, or the act was not tried. */
const optionalResources: ReadonlyMap<string, readonly string[]> = new Map([
  ["connect-mptcp", ["unavailable EPROTONOSUPPORT", "unavailable ENOPROTOOPT"]],
]);

function unavailable(act: Act, got: string): string[] {
  return optionalResources.get(act.name)?.includes(got) === true ? [] : [`${act.name}: ${got}`];
}

describe("the probe's table", () => {
  it("has at least one hundred and fifty acts that must be killed, and no name twice", () => {
    const killed = acts.filter((act) => act.confined === "SIGSYS");
    expect(killed.length).toBeGreaterThanOrEqual(150);
    expect(new Set(acts.map((act) => act.name)).size).toBe(acts.length);
  });

  it("shows for every control of the policy an act that succeeds unconfined", () => {
    const shown = new Set(
      acts.filter((act) => /^(ok|executed|SIG)/.test(act.control)).map((act) => act.proves),
    );
    for (const control of [
      "syscall_filter",
      "filesystem_deny",
      "network_deny",
      "process_deny",
      "thread_deny",
      "exec_memory_deny",
      "signal_deny",
      "ptrace_deny",
      "descriptor_closed",
      "identity_dropped",
      "memory_limit",
      "cpu_limit",
    ]) {
      expect(shown, control).toContain(control);
    }
  });

  it("lets nothing but the admitted acts and the documented residuals live", () => {
    const alive = acts.filter((act) => !/^(SIG|ENOMEM)/.test(act.confined));
    expect(new Set(alive.map((act) => act.proves))).toEqual(
      process.arch === "x64" ? new Set(["admitted", "residual"]) : new Set(["admitted"]),
    );
  });
});

describe.each(testUsers())("as $name", (user) => {
  it("every act has its natural result unconfined", () => {
    expect(surprises("control", user)).toEqual([]);
  }, 240_000);

  it("Landlock alone stops what it documents and no more", () => {
    expect(surprises("landlock", user)).toEqual([]);
  }, 240_000);

  it("every act is refused in a confined process, by SIGSYS unless the table says otherwise", () => {
    expect(surprises("confined", user)).toEqual([]);
  }, 240_000);
});
