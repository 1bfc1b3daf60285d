// Live checks that need more than one process, and so are no rows of the probe binary: does a worker end with its
// parent, and is its environment empty. Each with its control.
//
// Called by doctor only. TRUST: /proc about processes that were started here. Every process started here is ended here,
// by its id, also when a check fails half-way.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Control } from "./controls.js";
import type { Observation } from "./observe.js";
import { hostProc, type ProcReader } from "./proc-reader.js";
import { parseChildren } from "./proc-text.js";

/** One check with its control. */
export interface LiveCheck {
  readonly name: "parent_death" | "environment";
  readonly control: Control;
  /** `shown`: the worker behaved and the control did not; `failed`: the worker did not; `unavailable`: not tried, or inconclusive. */
  readonly state: "shown" | "failed" | "unavailable";
  readonly worker: string;
  readonly unconfined: string;
}

const SHELL = "/bin/sh";
/** Seconds that the control process lives if nobody ends it. */
const CONTROL_SECONDS = 30;
const READY_MS = 5_000;
/** A worker must be gone this long after its parent. */
const GONE_MS = 1_000;
const POLL_MS = 5;
const TEXT_MAX = 64 * 1024;

/**
 * A shell starts the worker and an ordinary process between anonymous pipes, and is killed. The worker must follow it; the
 * ordinary process does not, which shows that nothing else would have ended the worker. The pipe that the worker reads
 * is held open by the ordinary process, so the worker does not end for lack of input either.
 */
export async function checkParentDeath(workerPath: string, args: readonly string[]): Promise<LiveCheck> {
  const check = { name: "parent_death", control: "parent_death" } as const;
  const missing = (why: string): LiveCheck => ({
    ...check,
    state: "unavailable",
    worker: why,
    unconfined: "not tried",
  });
  if (!existsSync(SHELL)) return missing(`${SHELL} is missing`);
  const script = `sleep ${CONTROL_SECONDS} | "$0" "$@" 2>&1 | cat; :`;
  const shell = spawn(SHELL, ["-c", script, workerPath, ...args], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: "/usr/bin:/bin" },
  });
  const family: number[] = [];
  try {
    if (!(await firstOutput(shell)) || shell.pid === undefined)
      return missing("the worker did not say Welcome");
    family.push(...parseChildren(hostProc.text(`/proc/${shell.pid}/task/${shell.pid}/children`, TEXT_MAX)));
    const worker = family.find((pid) => runs(pid, workerPath));
    const ordinary = family.find((pid) => nameOf(pid) === "sleep");
    if (worker === undefined || ordinary === undefined)
      return missing("the two processes could not be told apart");
    shell.kill("SIGKILL");
    const began = Date.now();
    while (isAlive(worker) && Date.now() - began < GONE_MS) await pause(POLL_MS);
    const gone = !isAlive(worker);
    const survives = isAlive(ordinary);
    return {
      ...check,
      state: gone ? (survives ? "shown" : "unavailable") : "failed",
      worker: gone
        ? `gone ${Date.now() - began} ms after its parent was killed`
        : `alive ${GONE_MS} ms after its parent was killed`,
      unconfined: survives ? "lives on" : "gone too, so nothing is shown",
    };
  } catch (error) {
    return missing(error instanceof Error ? error.message : String(error));
  } finally {
    shell.kill("SIGKILL");
    for (const pid of family) end(pid);
    shell.stdout?.destroy();
  }
}

/** Whether an ordinary child inherits an environment where the observed worker has none. */
export async function checkEnvironment(
  observation: Observation,
  proc: ProcReader = hostProc,
): Promise<LiveCheck> {
  const check = { name: "environment", control: "environment_empty" } as const;
  const row = observation.find((one) => one.name === "environment");
  const child = spawn("sleep", [String(CONTROL_SECONDS)], {
    stdio: "ignore",
    env: { PATH: "/usr/bin:/bin", FLOWCELL_DOCTOR: "1" },
  });
  try {
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", reject);
    });
    const bytes = proc.text(`/proc/${child.pid}/environ`, TEXT_MAX).length;
    const unconfined = `${bytes} bytes in an ordinary child`;
    if (row?.state === "agrees" && bytes > 0)
      return { ...check, state: "shown", worker: row.found, unconfined };
    return { ...check, state: "unavailable", worker: row?.note ?? "not observed", unconfined };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { ...check, state: "unavailable", worker: row?.note ?? "not observed", unconfined: why };
  } finally {
    child.kill("SIGKILL");
  }
}

function firstOutput(child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), READY_MS);
    const settle = (ready: boolean): void => {
      clearTimeout(timer);
      resolve(ready);
    };
    child.stdout?.once("data", () => settle(true));
    child.once("exit", () => settle(false));
    child.once("error", () => settle(false));
  });
}

/** The name of a process, or "" when it is gone. */
function nameOf(pid: number): string {
  try {
    const text = hostProc.text(`/proc/${pid}/stat`, TEXT_MAX);
    return text.slice(text.indexOf("(") + 1, text.lastIndexOf(")"));
  } catch {
    return "";
  }
}

function isAlive(pid: number): boolean {
  try {
    const text = hostProc.text(`/proc/${pid}/stat`, TEXT_MAX);
    // A zombie has ended; nobody has collected it yet.
    return !/^\) [ZX]/.test(text.slice(text.lastIndexOf(")")));
  } catch {
    return false;
  }
}

/** The kernel keeps fifteen characters of a program's file name as the name of its process. */
function runs(pid: number, path: string): boolean {
  return nameOf(pid) === path.slice(path.lastIndexOf("/") + 1).slice(0, 15);
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // gone already, which is what was wanted
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
