// The controls: what a confined worker is denied, as a closed list with one row each.
//
// Used by the policy (which controls are required), the compiler (what this host enforces), the Welcome table and
// the observation (which fact speaks for which control), the evidence and the documents. A control is named here
// once; the tables elsewhere are keyed by these names, so that a new control without a row does not compile.

/** Every control there is. Append only: policies and reports name them. */
export const CONTROLS = [
  "engine_compartment",
  "syscall_filter",
  "filesystem_deny",
  "network_deny",
  "network_filter",
  "process_deny",
  "thread_deny",
  "exec_memory_deny",
  "signal_deny",
  "ptrace_deny",
  "descriptor_closed",
  "environment_empty",
  "memory_limit",
  "cpu_limit",
  "parent_death",
  "privacy_disclaim",
  "identity_dropped",
] as const;

/** One of `CONTROLS`. */
export type Control = (typeof CONTROLS)[number];

/** How far a host holds one control. */
export type ControlState = "enforced" | "partial" | "absent";

/** What one control means and where its proof ends. */
export interface ControlRow {
  /** One clause: what holds when the control is enforced. */
  readonly title: string;
  /** What evidence for this control does not prove, even at the highest level. */
  readonly doesNotProve: string;
}

/** The meaning of each control, the same on every operating system. */
export const CONTROL_ROWS: Readonly<Record<Control, ControlRow>> = {
  engine_compartment: {
    title: "the script engine reaches only its own linear memory and its declared imports",
    doesNotProve: "that the WebAssembly translator and the C compiler made no mistake",
  },
  syscall_filter: {
    title: "only the listed system calls with the listed arguments are possible; any other ends the process",
    doesNotProve: "that the kernel has no bug in a listed call (read, write, memory, clock, exit)",
  },
  filesystem_deny: {
    title: "no file can be opened, created, changed or looked up",
    doesNotProve: "anything about the three pipes that the worker was started with",
  },
  network_deny: {
    title: "no socket can be created, bound, connected or used",
    doesNotProve: "that the parent refuses a host call; that is the manifest's part",
  },
  network_filter: {
    title: "granted network access goes through the parent's ordered rules",
    doesNotProve: "anything about the worker: the rules are applied in the parent",
  },
  process_deny: {
    title: "no process can be created and no program executed",
    doesNotProve: "that no process existed before confinement; the observation covers that",
  },
  thread_deny: {
    title: "no thread can be created",
    doesNotProve: "anything about how the one thread spends its time; that is cpu_limit",
  },
  exec_memory_deny: {
    title: "no memory can become executable or shared",
    doesNotProve: "that code already in the executable cannot be reused by an attacker",
  },
  signal_deny: {
    title: "no process can be signalled",
    doesNotProve: "that other processes cannot signal the worker; its own user may kill it",
  },
  ptrace_deny: {
    title: "the worker can trace nobody, and an ordinary process cannot trace or read the worker",
    doesNotProve: "protection from root or a holder of CAP_SYS_PTRACE",
  },
  descriptor_closed: {
    title: "nothing but the three pipe ends is open",
    doesNotProve: "that the parent writes only what it means to those pipes",
  },
  environment_empty: {
    title: "the environment is empty",
    doesNotProve: "that the executable's path and argument are secret; they are not",
  },
  memory_limit: {
    title: "private memory is bounded by the operating system",
    doesNotProve: "an exact figure: the limit is a back-stop above the engine's own cap",
  },
  cpu_limit: {
    title: "processor time over the worker's life is bounded by the operating system",
    doesNotProve: "an exact figure: each activation's budget is measured and enforced by the parent",
  },
  parent_death: {
    title: "the worker ends when its parent ends",
    doesNotProve:
      "anything when the parent's launching thread ends first; workers are launched by the main thread",
  },
  privacy_disclaim: {
    title: "the worker does not carry its parent's privacy grants",
    doesNotProve: "anything on systems that have no such grants",
  },
  identity_dropped: {
    title: "the worker runs as nobody: not root, no groups, no capabilities",
    doesNotProve: "that other processes of the same identity cannot signal the worker",
  },
};

/** Whether a text names a control. */
export function isControl(name: string): name is Control {
  return Object.hasOwn(CONTROL_ROWS, name);
}
