// Blockers: why a policy cannot be turned into a plan on this host. Data for programs, sentences for people.
//
// Made by the probe (what the host lacks) and the compiler (what the policy wants beyond that). A blocker always says
// what to do about it; nothing ever runs past one.
import type { Control } from "./controls.js";

/** Every reason there is. Append only: programs switch on them. */
export const BLOCKER_CODES = [
  "policy_invalid",
  "backend_not_built",
  "architecture_unsupported",
  "worker_not_built",
  "worker_for_other_system",
  "kernel_too_old",
  "seccomp_missing",
  "proc_unusable",
  "proc_hidden",
  "identity_mixed",
  "identity_not_droppable",
  "launcher_unusable",
  "isolation_unavailable",
  "landlock_missing",
  "control_partial",
  "control_absent",
  "host_limit_too_low",
  "filesystem_mode_unsupported",
  "network_mode_unsupported",
  "environment_unsupported",
  "processes_unsupported",
] as const;
export type BlockerCode = (typeof BLOCKER_CODES)[number];

/** One reason why nothing runs. */
export interface Blocker {
  /** The control that cannot be held; null when the reason is no single control. */
  readonly control: Control | null;
  readonly code: BlockerCode;
  readonly message: string;
  readonly remedy: string;
}

/** One line for a person: what, and what to do. */
export function formatBlocker(blocker: Blocker): string {
  const about = blocker.control === null ? blocker.code : `${blocker.control} (${blocker.code})`;
  return `${about}: ${blocker.message} ${sentence(blocker.remedy)}`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}
