// Why a launch failed, in words an operator can act on. Thrown by launch.ts; the step names are those of launch.h
// (a test walks the library's list and finds a row here for each).

import { constants } from "node:os";

/** What to do about a step that failed, whatever the errno. */
const REMEDIES: Readonly<Record<string, string>> = {
  arguments: "Pass the absolute path of the worker binary and at most eight arguments.",
  thread:
    "Launch from the main thread: the kernel kills a worker when the thread that launched it ends, so a worker_thread cannot own one.",
  child_signal:
    "This process ignores SIGCHLD, so the kernel throws exit statuses away. Restore its default disposition before launching.",
  limits:
    "The process's own resource limits cannot be read; a seccomp filter around it may refuse getrlimit.",
  open: "Check that the worker binary exists and that every folder on its path may be searched by this user (npm run build makes it).",
  binary: "The worker binary must be a regular file without set-user-ID and set-group-ID bits.",
  pipes: "Raise the limit on open files (ulimit -n, LimitNOFILE=).",
  stack: "The process is out of memory or of address space.",
  clone:
    "Raise the limits on processes (ulimit -u, TasksMax=, pids.max); the kernel must be 5.4 or newer and a filter around this process must allow clone with CLONE_PIDFD.",
  session: "A filter around this process refuses setsid.",
  parent_death: "A filter around this process refuses prctl(PR_SET_PDEATHSIG).",
  parent_gone: "The launching process ended meanwhile.",
  signals: "A filter around this process refuses rt_sigaction or rt_sigprocmask.",
  stdio: "A filter around this process refuses dup3, or the limit on open files is below 3.",
  descriptors: "Neither close_range nor /proc/self/fd is usable; mount procfs on /proc.",
  directory: "This user must be able to enter /.",
  limit_core: "A filter around this process refuses prlimit64.",
  limit_data: "A filter around this process refuses prlimit64.",
  limit_cpu: "A filter around this process refuses prlimit64.",
  limit_stack: "A filter around this process refuses prlimit64.",
  exec: "Check that the worker binary is executable by this user, built for this processor, and not on a file system mounted noexec.",
};

const ERRNO_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.errno).map(([name, value]) => [value, name]),
);

/** "EACCES" for 13; "errno 999" for a number without a name. */
export function errnoName(errno: number): string {
  return ERRNO_NAMES.get(errno) ?? `errno ${errno}`;
}

/** Whether a step has a remedy of its own. */
export function isKnownStep(step: string): boolean {
  return Object.hasOwn(REMEDIES, step);
}

/** A worker could not be launched; nothing of it is left. */
export class LaunchError extends Error {
  override readonly name = "LaunchError";
  /** The step of launch.h that failed. */
  readonly step: string;
  /** 0 when the step failed by a check of its own. */
  readonly errno: number;
  readonly errnoName: string | null;

  constructor(step: string, errno: number, path: string) {
    const why = errno === 0 ? "" : ` (${errnoName(errno)})`;
    super(`flowcell: cannot launch ${path}: step ${step} failed${why}. ${REMEDIES[step] ?? ""}`.trimEnd());
    this.step = step;
    this.errno = errno;
    this.errnoName = errno === 0 ? null : errnoName(errno);
  }
}
