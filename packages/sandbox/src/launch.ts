// Launching from a plan: the only way from a policy to a process.
//
// Called by the pool and by doctor. The plan decides path, argument and limits; the caller decides nothing but when.
// Kept true: what is not a genuine plan of this process, boot and identity launches nothing (PlanError).
import { type LaunchedWorker, launchWorker } from "@flowcell/native";
import {
  describePlanState,
  identityOf,
  type PlanDescription,
  type PlanState,
  requirePlan,
  type SandboxPlan,
} from "./plan.js";
import { LINUX_BACKEND } from "./probe.js";
import { hostProc } from "./proc-reader.js";

const BOOT_ID = "/proc/sys/kernel/random/boot_id";
const BOOT_ID_MAX = 128;

/** Identity of this boot, read anew: a plan made before a checkpoint and restore elsewhere must not pass. */
function currentBootId(): string {
  try {
    return hostProc.text(BOOT_ID, BOOT_ID_MAX).trim();
  } catch {
    return ""; // a boot that cannot be named matches no plan
  }
}

/** The state of a plan that is valid here and now; throws PlanError otherwise. */
export function launchState(plan: SandboxPlan): PlanState {
  const identity = identityOf(process.geteuid?.() ?? -1, process.getegid?.() ?? -1);
  return requirePlan(plan, { backend: LINUX_BACKEND, bootId: currentBootId(), identity });
}

/** What a plan holds, for reports. Throws PlanError for what is no valid plan. */
export function describePlan(plan: SandboxPlan): PlanDescription {
  return describePlanState(launchState(plan));
}

/**
 * Starts a worker of this plan. It confines itself and sends Welcome; give that to `acceptWorker`.
 * Throws PlanError, LaunchError (the step that failed) or NativeMissingError. `launcherPath` as in packages/native.
 */
export function launchPlanned(plan: SandboxPlan, launcherPath?: string): LaunchedWorker {
  const state = launchState(plan);
  return launchWorker({
    path: state.workerPath,
    args: state.args,
    limits: state.limits,
    ...(launcherPath === undefined ? {} : { launcherPath }),
  });
}
