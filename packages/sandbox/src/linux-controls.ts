// What the Linux backend holds each control with, on a host that has no blockers: one row per control.
// Called by the probe; scripts/generate-confinement.mjs prints the rows into docs/CONFINEMENT.md. Pure.
// Kept true: a layer is named only for what it denies by itself on a kernel of that age. Whether the absence of Landlock
// is acceptable is not said here but by the policy (compile.ts).
import { CONTROLS, type Control, type ControlState } from "./controls.js";

/** Mechanisms that hold a control. A run names those that were live for its worker. */
export type Layer =
  | "wasm"
  | "seccomp"
  | "landlock"
  | "no_new_privs"
  | "non_dumpable"
  | "mdwe"
  | "rlimit"
  | "identity"
  | "launcher"
  | "parent_death_signal"
  | "parent";

/** How far a host holds one control. */
export interface ControlStatus {
  readonly control: Control;
  readonly state: ControlState;
  readonly layers: readonly Layer[];
  /** What is missing when the control is partial or absent; empty when it is enforced. */
  readonly missing: string;
}

/** What the rows depend on. */
export interface LinuxOffer {
  /** 0 when the kernel has no Landlock. */
  readonly landlockAbi: number;
  readonly memoryDenyWriteExecute: boolean;
  /** Whether the parent is root, whose workers give that up. */
  readonly root: boolean;
}

/** Landlock denies files since its first ABI, TCP since ABI 4, signals to others since ABI 6. */
const LANDLOCK_NET_ABI = 4;
const LANDLOCK_SIGNAL_ABI = 6;

/** Every control, in the order of `CONTROLS`. */
export function linuxControls(offer: LinuxOffer): readonly ControlStatus[] {
  const landlockFrom = (abi: number): readonly Layer[] => (offer.landlockAbi >= abi ? ["landlock"] : []);
  const mdwe: readonly Layer[] = offer.memoryDenyWriteExecute ? ["mdwe"] : [];
  const enforced = (...layers: Layer[]): Omit<ControlStatus, "control"> => ({
    state: "enforced",
    layers,
    missing: "",
  });
  const absent = (missing: string): Omit<ControlStatus, "control"> => ({
    state: "absent",
    layers: [],
    missing,
  });
  const rows: Readonly<Record<Control, Omit<ControlStatus, "control">>> = {
    engine_compartment: enforced("wasm"),
    syscall_filter: enforced("seccomp", "no_new_privs"),
    filesystem_deny: enforced("seccomp", ...landlockFrom(1)),
    network_deny: enforced("seccomp", ...landlockFrom(LANDLOCK_NET_ABI)),
    network_filter: absent("this build has no network broker in the parent; workers have no network at all"),
    process_deny: enforced("seccomp", "rlimit"),
    thread_deny: enforced("seccomp", "rlimit"),
    exec_memory_deny: enforced("seccomp", ...mdwe),
    signal_deny: enforced("seccomp", ...landlockFrom(LANDLOCK_SIGNAL_ABI)),
    ptrace_deny: enforced("seccomp", "non_dumpable", ...landlockFrom(1)),
    descriptor_closed: enforced("launcher", "rlimit"),
    environment_empty: enforced("launcher"),
    memory_limit: enforced("rlimit", "wasm"),
    cpu_limit: enforced("rlimit", "parent"),
    parent_death: enforced("parent_death_signal"),
    privacy_disclaim: absent("Linux has no per-application privacy grants that could be disclaimed"),
    identity_dropped: offer.root
      ? enforced("identity")
      : {
          state: "partial",
          layers: [],
          missing:
            "an ordinary user cannot change identity: workers keep this user's id and groups, without capabilities",
        },
  };
  return CONTROLS.map((control) => ({ control, ...rows[control] }));
}
