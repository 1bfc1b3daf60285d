/*
 * The launcher library: starts a worker, kills it, collects it, measures it. One C API, one file per OS
 * (launch_linux.c, host_linux.c).
 *
 * Called by: packages/native, through koffi, on Node's main thread.
 * Trust: its caller. Nothing here reads a byte that a worker wrote.
 * Kept true: a launched worker has exactly the descriptors 0, 1 and 2 (pipe ends), an empty environment, a session
 * of its own, default signals, an empty signal mask, "/" as its directory, the limits below, and dies with the
 * parent. If any of that cannot be had, nothing runs and the result names the step that failed.
 *
 * Results carry {step, error}: `step` is 0 or one of LAUNCH_STEPS, `error` an errno value or 0. Other functions
 * return a negative errno.
 */
#ifndef FLOWCELL_LAUNCH_LAUNCH_H
#define FLOWCELL_LAUNCH_LAUNCH_H

#include <stdint.h>

#define LAUNCH_API __attribute__((visibility("default")))

/*
 * The steps of a launch, in order, with the names that errors carry (launch_step_name). Numbers are not part of
 * any format: the caller asks for the name.
 */
#define LAUNCH_STEPS(X)                                                                      \
  X(ARGUMENTS, "arguments")       /* the path is not absolute, or an argument is out of range */ \
  X(THREAD, "thread")             /* not the main thread */                                  \
  X(CHILD_SIGNAL, "child_signal") /* the parent ignores SIGCHLD: exit statuses would be lost */ \
  X(LIMITS, "limits")             /* the parent's own limits cannot be read */               \
  X(OPEN, "open")                 /* the worker binary cannot be opened */                   \
  X(BINARY, "binary")             /* it is no regular file, or set-user-ID or set-group-ID */ \
  X(PIPES, "pipes")                                                                          \
  X(STACK, "stack")               /* no memory for the child's stack */                      \
  X(CLONE, "clone")                                                                          \
  X(SESSION, "session")           /* from here on in the child */                            \
  X(PARENT_DEATH, "parent_death")                                                            \
  X(PARENT_GONE, "parent_gone")                                                              \
  X(SIGNALS, "signals")                                                                      \
  X(STDIO, "stdio")                                                                          \
  X(DESCRIPTORS, "descriptors")                                                              \
  X(DIRECTORY, "directory")                                                                  \
  X(LIMIT_CORE, "limit_core")                                                                \
  X(LIMIT_DATA, "limit_data")                                                                \
  X(LIMIT_CPU, "limit_cpu")                                                                  \
  X(LIMIT_STACK, "limit_stack")                                                              \
  X(EXEC, "exec")

enum launch_step {
  LAUNCH_OK = 0,
#define LAUNCH_STEP(name, text) LAUNCH_STEP_##name,
  LAUNCH_STEPS(LAUNCH_STEP)
#undef LAUNCH_STEP
};

enum { LAUNCH_ARGUMENTS_MAX = 8 };

/*
 * In: the limits wanted. Out: the limits set, each the lower of what was wanted and the hard limit that the parent
 * itself runs under; the caller judges whether that is enough. Soft and hard are the same. The core limit is 0.
 */
struct launch_limits {
  uint64_t data_bytes;
  uint64_t cpu_seconds;
  uint64_t stack_bytes;
};

/* On failure only step and error are meaningful. The descriptors are the parent's: non-blocking, close-on-exec. */
struct launch_result {
  int32_t step;
  int32_t error;
  int32_t pid;
  int32_t pidfd;
  int32_t stdin_fd;  /* write end of the worker's 0 */
  int32_t stdout_fd; /* read end of its 1 */
  int32_t stderr_fd; /* read end of its 2 */
};

struct launch_exit {
  int32_t code;   /* exit code, or -1 if a signal ended it */
  int32_t signal; /* the signal, or 0 */
  int64_t user_us;
  int64_t system_us;
};

/*
 * Starts the binary at `path` (absolute) with argv = {path, arguments[0 … count-1]}. Returns the step, 0 for success.
 * Blocks the calling thread until the new process has executed the binary or failed to, about 0.1 ms, whatever
 * the size of the parent.
 */
LAUNCH_API int32_t launch_worker(const char *path, const char *const *arguments, uint32_t count,
                                 struct launch_limits *limits, struct launch_result *result);

/* The name of a step, NULL for a number that is none. */
LAUNCH_API const char *launch_step_name(int32_t step);

/* SIGKILL. 0, or -ESRCH when the process has been collected. A pid that was reused is never hit. */
LAUNCH_API int32_t launch_kill(int32_t pidfd);

/* Collects a dead worker without waiting: 1 and *out, 0 if it lives, -ECHILD if somebody else has collected it. */
LAUNCH_API int32_t launch_reap(int32_t pidfd, struct launch_exit *out);

/*
 * CPU time (user and system) the process has used, in ns, also of a dead one until it is collected. -ESRCH afterwards:
 * the answer is given only if pidfd proves that the pid was not reused.
 */
LAUNCH_API int64_t launch_cpu_ns(int32_t pid, int32_t pidfd);

/* ---- what this host offers (host_linux.c) ------------------------------------------------------------------- */

/* Values are 1, 0, or a negative errno where the question itself was refused. */
struct host_facts {
  int64_t landlock_abi;         /* ≥ 1, or -ENOSYS (not built in), -EOPNOTSUPP (off at boot), -EPERM (filtered) */
  int64_t seccomp_filter;       /* filters can be installed */
  int64_t seccomp_tsync;        /* … on all threads at once */
  int64_t seccomp_kill_process; /* the action that ends the whole process */
  int64_t mdwe;                 /* memory-deny-write-execute exists (6.3) */
  int64_t close_range_cloexec;  /* (5.11) */
  int64_t own_seccomp_mode;     /* of this process: 0, 2 */
  int64_t own_no_new_privs;
  int64_t own_dumpable;
  int64_t own_personality;
  int64_t page_bytes;
  int64_t procfs;               /* /proc is a procfs */
  uint64_t hard_data_bytes;     /* this process's hard limits, all ones for none */
  uint64_t hard_cpu_seconds;
  uint64_t hard_stack_bytes;
  uint64_t hard_nofile;
};

LAUNCH_API void launch_host_facts(struct host_facts *out);

#endif
