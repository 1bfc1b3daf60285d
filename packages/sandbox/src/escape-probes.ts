// Live escape probes: each act that a confined process must not do is tried here and now, once without confinement and
// once with the worker's own, each in a process of its own. Only the pair proves something: an act that fails for
// another reason would fail confined as well.
//
// Called by doctor. The acts and what must come of them are the probe binary's table (worker-native/src/probe); it links
// the very objects that confine a worker. TRUST: the probe binary is ours; its output is still read bounded and strictly.
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LaunchLimits, launchWorker } from "@flowcell/native";
import { parseWelcome, untrusted, type WelcomeFacts, type WelcomeFieldName } from "@flowcell/protocol";
import { Child, endOf } from "./child.js";
import { exitCodeRow } from "./exits.js";
import { NOBODY } from "./probe.js";
import { FACT_NAMES } from "./welcome.js";

/** One act of the probe binary. Outcomes are alternatives split by `|`. */
export interface ProbeAct {
  readonly name: string;
  /** The control it is evidence for; `admitted` for what a worker may do, `residual` for what nobody can deny. */
  readonly proves: string;
  readonly control: string;
  readonly landlock: string;
  readonly confined: string;
}

/** What came of one attempt. */
export interface ProbeAttempt {
  /** Whether the process came as far as the attempt. */
  readonly ready: boolean;
  /** `ok`, an error name, a signal, `exit N`, `executed`; or why there was no attempt. */
  readonly outcome: string;
}

/**
 * - `refused`: succeeded unconfined, refused confined
 * - `refused_only`: refused confined, but unconfined it did not succeed either: proves nothing
 * - `allowed`: allowed confined, as its row says it must be (what a worker needs, or what nobody can deny)
 * - `unavailable`: this host lacks what the act needs
 * - `inconclusive`: one of the two attempts did not take place, or the unconfined one is not as listed
 * - `escaped`: not refused as it must be
 */
export type ProbeVerdict =
  | "refused"
  | "refused_only"
  | "allowed"
  | "unavailable"
  | "inconclusive"
  | "escaped";

/** One act with both attempts. */
export interface ProbeResult extends ProbeAct {
  readonly verdict: ProbeVerdict;
  readonly unconfined: ProbeAttempt;
  readonly worker: ProbeAttempt;
}

/** Where the probe binary lies and how it is started. */
export interface ProbeSetup {
  readonly probePath: string;
  readonly launcherPath?: string | undefined;
  /** A folder in which attempts may get folders of their own. */
  readonly scratchFolder?: string | undefined;
}

const MEBIBYTE = 1024 * 1024;

/** Limits of an unconfined attempt: wide enough that none of them is what refuses an act. */
const WIDE: LaunchLimits = { dataBytes: 2048 * MEBIBYTE, cpuSeconds: 60, stackBytes: 8 * MEBIBYTE };

/** Limits of a confined attempt: a quarter of a gibibyte and 1.6 seconds of CPU are what the limit acts ask for. */
const NARROW: LaunchLimits = { dataBytes: 64 * MEBIBYTE, cpuSeconds: 1, stackBytes: 8 * MEBIBYTE };

const DEADLINE_MS = 15_000;
const OUTPUT_MAX = 4_096;
const LIST_MAX = 256 * 1024;
const ACTS_MAX = 2_000;
const TOGETHER = 4;

/** The exit code of a probe that lacks something it needs. */
const EXIT_UNAVAILABLE = 3;

/** Reads the table of the probe binary. Throws an Error that says what is wrong with it. */
export async function listActs(setup: ProbeSetup): Promise<readonly ProbeAct[]> {
  const outcome = await start(setup, ["--list"], WIDE, LIST_MAX).finish(DEADLINE_MS);
  if (outcome.exit.code !== 0) throw new Error(`the probe's list ended with ${endOf(outcome.exit)}`);
  return parseActs(outcome.output.toString("utf8"));
}

/**
 * What the probe binary attests when it has confined itself, in the form of a Welcome. Its build is its own, so both
 * identities are zero. Throws an Error that says how it ended when it attests nothing.
 */
export async function probeFacts(setup: ProbeSetup): Promise<WelcomeFacts> {
  const child = start(setup, ["--facts"], NARROW, OUTPUT_MAX);
  const said = await child.until((output) => output.includes("\n"), DEADLINE_MS);
  child.closeInput();
  const { exit, output } = await child.finish(DEADLINE_MS);
  if (!said) throw new Error(`the probe attests nothing: ${describeEnd(endOf(exit), exit.code)}`);
  const [line = ""] = output.toString("utf8").split("\n");
  // TRUST: parseWelcome establishes the form; the caller compares what the facts say.
  return parseWelcome(untrusted(line));
}

/** Facts that the probe binary must share with a worker of the plan, or its attempts say nothing about the worker. */
const SHARED_FACTS: readonly WelcomeFieldName[] = FACT_NAMES.filter(
  // The identities are each binary's own; the three limits are those of the launch.
  (fact) => !["buildId", "fingerprint", "limitData", "limitCpu", "limitStack"].includes(fact),
);

/** The first shared fact in which the probe's confinement is another than the worker's. */
export function differingFact(probe: WelcomeFacts, worker: WelcomeFacts): WelcomeFieldName | undefined {
  return SHARED_FACTS.find((fact) => !Object.is(probe[fact], worker[fact]));
}

/** Checks the probe's list: one JSON object a line, each with exactly the texts of a row. */
export function parseActs(text: string): readonly ProbeAct[] {
  const lines = text.split("\n");
  if (lines.pop() !== "" || lines.length === 0) throw new Error("the probe's list is cut off");
  if (lines.length > ACTS_MAX) throw new Error(`the probe's list has more than ${ACTS_MAX} lines`);
  return lines.map((line, index) => {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw new Error(`line ${index + 1} of the probe's list is not JSON`);
    }
    const row =
      typeof value === "object" && value !== null
        ? new Map<string, unknown>(Object.entries(value))
        : new Map();
    const field = (name: string): string => {
      const found: unknown = row.get(name);
      if (typeof found !== "string" || found === "")
        throw new Error(`line ${index + 1} of the probe's list: ${name}`);
      return found;
    };
    return {
      name: field("name"),
      proves: field("proves"),
      control: field("control"),
      landlock: field("landlock"),
      confined: field("confined"),
    };
  });
}

/** Tries every act, some at a time. The results are in the order of the acts. */
export async function runActs(setup: ProbeSetup, acts: readonly ProbeAct[]): Promise<readonly ProbeResult[]> {
  const results = new Array<ProbeResult | undefined>(acts.length).fill(undefined);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next; index < acts.length; index = next) {
      next += 1;
      const act = acts[index];
      if (act === undefined) return;
      const unconfined = await attempt(setup, act, "--control");
      const worker = await attempt(setup, act, "--confined");
      results[index] = { ...act, unconfined, worker, verdict: judgeAct(act, unconfined, worker) };
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, work));
  return results.filter((result) => result !== undefined);
}

/** Signals that end a process for a reason of its own, and so are no success of an act. */
const FAULTS: readonly string[] = ["SIGSYS", "SIGSEGV", "SIGBUS", "SIGILL", "SIGTRAP", "SIGKILL"];

function succeeded(outcome: string): boolean {
  if (outcome === "ok" || outcome === "executed") return true;
  return outcome.startsWith("SIG") && !FAULTS.includes(outcome);
}

/** What the two attempts at an act amount to. */
export function judgeAct(act: ProbeAct, unconfined: ProbeAttempt, worker: ProbeAttempt): ProbeVerdict {
  const wanted = act.confined.split("|");
  // What came of the confined attempt speaks first: nothing may excuse an act that was not refused.
  if (worker.ready && !wanted.includes(worker.outcome)) return "escaped";
  if (unconfined.outcome.startsWith("unavailable") || worker.outcome.startsWith("unavailable"))
    return "unavailable";
  if (!worker.ready || !unconfined.ready || !act.control.split("|").includes(unconfined.outcome))
    return "inconclusive";
  if (act.proves === "admitted" || act.proves === "residual") return "allowed";
  return succeeded(unconfined.outcome) && worker.outcome !== unconfined.outcome ? "refused" : "refused_only";
}

async function attempt(
  setup: ProbeSetup,
  act: ProbeAct,
  mode: "--control" | "--confined",
): Promise<ProbeAttempt> {
  const scratch = mkdtempSync(join(setup.scratchFolder ?? tmpdir(), "flowcell-probe-"));
  try {
    // A root parent's attempts run as nobody, who must be able to write there.
    if (process.getuid?.() === 0) chownSync(scratch, NOBODY, NOBODY);
    const args = [mode, act.name, `--scratch=${scratch}`];
    const child = start(setup, args, mode === "--control" ? WIDE : NARROW, OUTPUT_MAX);
    child.closeInput();
    const outcome = await child.finish(DEADLINE_MS);
    if (outcome.timedOut) return { ready: false, outcome: "no end within its deadline" };
    return readAttempt(outcome.output.toString("latin1"), endOf(outcome.exit), outcome.exit.code);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** What a probe said and how it ended, as an attempt. */
export function readAttempt(output: string, end: string, code: number | null): ProbeAttempt {
  const [first, ...rest] = output.split("\n");
  if (first !== "ready") {
    if (code === EXIT_UNAVAILABLE && first?.startsWith("unavailable ")) {
      return { ready: false, outcome: printable(first) };
    }
    return { ready: false, outcome: describeEnd(end, code) };
  }
  const said = rest.filter((line) => line !== "").map(printable);
  // What it said counts when it lived to the end of its attempt; otherwise how it died does.
  if (code === 0) return { ready: true, outcome: said[0] ?? end };
  return { ready: true, outcome: end };
}

function describeEnd(end: string, code: number | null): string {
  const row = code === null ? undefined : exitCodeRow(code);
  return row === undefined ? end : `${end} (${row.name})`;
}

function printable(text: string): string {
  return text.slice(0, 64).replace(/[^\x20-\x7e]/g, "?");
}

function start(setup: ProbeSetup, args: readonly string[], limits: LaunchLimits, bytesMax: number): Child {
  const { probePath: path, launcherPath } = setup;
  return new Child(
    launchWorker({ path, args, limits, ...(launcherPath === undefined ? {} : { launcherPath }) }),
    bytesMax,
  );
}
