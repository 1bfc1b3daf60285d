/**
 * The real backend: launches what the plan says, opens its pipes, lets packages/sandbox judge its Welcome.
 */
import { LaunchError, NativeMissingError } from "@flowcell/native";
import {
  acceptWorker,
  describePlan,
  launchPlanned,
  PlanError,
  type SandboxPlan,
  type WorkerConfinement,
} from "@flowcell/sandbox";
import { StartError, type WorkerBackend } from "./backend.js";
import { openPipes } from "./pipes.js";

/** `launcherPath`: another launcher library than this clone's, for tests that run copies as an ordinary user. */
export function systemBackend(plan: SandboxPlan, launcherPath?: string): WorkerBackend<WorkerConfinement> {
  const { limits } = describePlan(plan);
  return {
    cpuLimitSeconds: limits.cpuSeconds,
    start(handlers) {
      try {
        const worker = launchPlanned(plan, launcherPath);
        return { process: worker, pipes: openPipes(worker, handlers) };
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

function startError(error: unknown): StartError {
  if (error instanceof LaunchError) return new StartError(error.step, error.message, { cause: error });
  if (error instanceof NativeMissingError) return new StartError("missing", error.message, { cause: error });
  if (error instanceof PlanError) return new StartError(error.reason, error.message, { cause: error });
  throw error;
}
