/**
 * The real backend: launches what the plan says, opens its pipes, lets packages/sandbox judge its Welcome.
 */
import { readFileSync } from "node:fs";
import { LaunchError, type LaunchedWorker, NativeMissingError } from "@flowcell/native";
import {
  acceptWorker,
  describePlan,
  launchPlanned,
  PlanError,
  type SandboxPlan,
  type WorkerConfinement,
} from "@flowcell/sandbox";
import { type ProcessExit, StartError, type WorkerBackend, type WorkerProcess } from "./backend.js";
import { type Moment, moment, RefusedCallSearch } from "./kernel-log.js";
import { openPipes } from "./pipes.js";

/** `launcherPath`: another launcher library than this clone's, for tests that run copies as an ordinary user. */
export function systemBackend(plan: SandboxPlan, launcherPath?: string): WorkerBackend<WorkerConfinement> {
  const { limits } = describePlan(plan);
  return {
    cpuLimitSeconds: limits.cpuSeconds,
    start(handlers) {
      try {
        const launched = moment();
        const worker = launchPlanned(plan, launcherPath);
        return { process: new SystemProcess(worker, launched), pipes: openPipes(worker, handlers) };
      } catch (error) {
        throw startError(error);
      }
    },
    judge(welcome, process) {
      const acceptance = acceptWorker(plan, process.pid, welcome);
      if (acceptance.ok) return { ok: true, confinement: acceptance.confinement };
      const { reason, fact, message, remedy } = acceptance.refusal;
      return { ok: false, reason, fact, message: `${message}; ${remedy}` };
    },
  };
}

/** A launched worker, its memory as the kernel counts it, and what the kernel says about its end. */
export class SystemProcess implements WorkerProcess {
  readonly pid: number;
  readonly #worker: LaunchedWorker;
  readonly #launched: Moment;
  #search: RefusedCallSearch | undefined;
  #exit: ProcessExit | undefined;

  /** `launched`: taken before the launch, so that nothing of this process is older. */
  constructor(worker: LaunchedWorker, launched: Moment) {
    this.#worker = worker;
    this.#launched = launched;
    this.pid = worker.pid;
  }

  kill(): boolean {
    return this.#worker.kill();
  }

  reap(): ProcessExit | null {
    if (this.#exit !== undefined) return this.#exit;
    const exit = this.#worker.reap();
    if (exit === null) return null;
    if (exit.signal === "SIGSYS") {
      this.#search ??= new RefusedCallSearch(this.pid, this.#launched);
      const refusedCall = this.#search.look();
      if (refusedCall === undefined) return null;
      this.#exit = { ...exit, refusedCall: refusedCall ?? undefined };
    } else {
      this.#exit = exit;
    }
    return this.#exit;
  }

  cpuUs(): number | null {
    return this.#worker.cpuUs();
  }

  /** The pid is the worker's until it is collected, and nobody asks after that. */
  privateBytes(): number | null {
    try {
      const anonymous = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, "latin1"));
      return anonymous === null ? null : Number(anonymous[1]) * 1024;
    } catch {
      // Dead, or a procfs that hides other users' processes: the process's own data limit still stands.
      return null;
    }
  }
}

function startError(error: unknown): StartError {
  if (error instanceof LaunchError) return new StartError(error.step, error.message, { cause: error });
  if (error instanceof NativeMissingError) return new StartError("missing", error.message, { cause: error });
  if (error instanceof PlanError) return new StartError(error.reason, error.message, { cause: error });
  throw error;
}
