/*
 * Launching on Linux. See launch.h for what is kept true.
 *
 * The child is made by clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD) on a stack of its own. CLONE_VM: no page table is
 * copied, so the parent is blocked for about 0.1 ms however large it is (fork: 2.6 ms at 470 MB). CLONE_VFORK: the
 * calling thread sleeps until the child has executed the worker or exited; this is what makes the shared stack
 * and the failure record safe. All signals are blocked around it, so that no handler of the parent ever runs
 * in the child. The child makes raw system calls only (raw_linux.h) and never changes its credentials: a change
 * would make the shared memory non-dumpable for the parent too, and would clear the parent-death signal.
 *
 * The exit signal given to clone is 0: a child that fails before exec is invisible to a waitpid(-1) elsewhere in the
 * process and is not collected by the kernel, so that its failure is always ours to report. exec sets it to
 * SIGCHLD, whatever clone was given. libuv's SIGCHLD handler asks only for the pids that it started.
 */
#define _GNU_SOURCE
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch/raw_linux.h"

/* Numbers that older C library headers lack; the kernel's, the same on every architecture. */
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif

enum {
  FIRST_PRIVATE_FD = 3,
  KERNEL_SIGNALS = 64,
  CHILD_STACK_BYTES = 64 * 1024,
  CHILD_STACK_GUARD = 64 * 1024, /* a page on every page size */
  PATH_LENGTH_MAX = 4095,
};

/* What the kernel calls sigset_t: 64 bits. The C library's type is larger and hides two signals. */
typedef uint64_t kernel_sigset;

/* The kernel's struct sigaction; all zero means: default action, no flags, empty mask. */
struct kernel_sigaction {
  unsigned long handler;
  unsigned long flags;
  unsigned long restorer;
  kernel_sigset mask;
};

/* The three descriptors of the worker, and the parent's other ends. -1: not open. */
struct pipe_ends {
  int worker[3];
  int parent[3];
};

/* Everything the child needs, in the parent's frame; the child writes step and error if it fails. */
struct child {
  char *const *argv;
  int stdio[3];
  int binary;
  kernel_sigset changed; /* the signals to set back to default */
  pid_t parent;
  struct rlimit core, data, cpu, stack;
  int32_t step;
  int32_t error;
};

/* ---- the child -------------------------------------------------------------------------------------------- */

ON_CHILD_STACK _Noreturn static void child_fail(struct child *child, enum launch_step step, long result) {
  child->step = (int32_t)step;
  child->error = (int32_t)-result;
  for (;;) (void)RAW(SYS_exit_group, 127);
}

ON_CHILD_STACK static void child_require(struct child *child, enum launch_step step, long result) {
  if (result < 0) child_fail(child, step, result);
}

/* One close-on-exec mark per entry of /proc/self/fd, for kernels and filters without close_range. */
ON_CHILD_STACK static long mark_descriptors_by_list(void) {
  long list = RAW(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (list < 0) return list;
  for (;;) {
    _Alignas(8) char buffer[2048];
    long length = RAW(SYS_getdents64, list, buffer, sizeof buffer);
    if (length <= 0) return length;
    /* linux_dirent64: u64 inode, s64 offset, u16 length, u8 type, name. */
    for (long at = 0; at < length;) {
      const char *name = buffer + at + 19;
      long fd = 0;
      while (*name >= '0' && *name <= '9') fd = fd * 10 + (*name++ - '0');
      if (fd >= FIRST_PRIVATE_FD) {
        long result = RAW(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
        if (result < 0) return result;
      }
      at += *(const unsigned short *)(const void *)(buffer + at + 16);
    }
  }
}

/*
 * Every descriptor above stdio closes when the worker is executed. They are marked rather than closed: a close here
 * may wait for a slow file system while the parent sleeps, the kernel's own at exec happens after it woke.
 */
ON_CHILD_STACK static long mark_descriptors(void) {
  long result = RAW(SYS_close_range, FIRST_PRIVATE_FD, ~0U, CLOSE_RANGE_CLOEXEC);
  return result == 0 ? 0 : mark_descriptors_by_list();
}

/*
 * Ignored signals are set to default, which exec leaves as they are, and handled ones too: the mask is lifted before exec,
 * and a handler of the parent would run on the parent's memory. Signals that are pending by then are thrown away
 * first: one sent to the parent's process group just after clone (Ctrl-C, Ctrl-Z) would otherwise end or stop the
 * child in its new session, where nobody continues it while the parent sleeps.
 */
ON_CHILD_STACK static long reset_signals(kernel_sigset changed) {
  const kernel_sigset all = ~(kernel_sigset)0;
  const struct timespec now = {0, 0};
  for (int taken = 0; taken < 4 * KERNEL_SIGNALS; taken++) {
    if (RAW(SYS_rt_sigtimedwait, &all, 0, &now, sizeof all) < 0) break;
  }
  const struct kernel_sigaction by_default = {0};
  for (int number = 1; number <= KERNEL_SIGNALS; number++) {
    if ((changed >> (number - 1) & 1) == 0 || number == SIGKILL || number == SIGSTOP) continue;
    long result = RAW(SYS_rt_sigaction, number, &by_default, 0, sizeof all);
    if (result < 0) return result;
  }
  return 0;
}

/* Runs in the parent's memory on its own stack. Never returns. */
ON_CHILD_STACK static int child_main(void *argument) {
  struct child *child = argument;
  child_require(child, LAUNCH_STEP_SESSION, RAW(SYS_setsid, 0));

  /* The parent may have died before the signal was armed; then nobody sends it. */
  child_require(child, LAUNCH_STEP_PARENT_DEATH, RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
  if (RAW(SYS_getppid, 0) != child->parent) child_fail(child, LAUNCH_STEP_PARENT_GONE, 0);

  child_require(child, LAUNCH_STEP_SIGNALS, reset_signals(child->changed));
  for (int fd = 0; fd < 3; fd++) {
    child_require(child, LAUNCH_STEP_STDIO, RAW(SYS_dup3, child->stdio[fd], fd, 0));
  }
  child_require(child, LAUNCH_STEP_DESCRIPTORS, mark_descriptors());
  child_require(child, LAUNCH_STEP_DIRECTORY, RAW(SYS_chdir, "/"));

  child_require(child, LAUNCH_STEP_LIMIT_CORE, RAW(SYS_prlimit64, 0, RLIMIT_CORE, &child->core, 0));
  child_require(child, LAUNCH_STEP_LIMIT_DATA, RAW(SYS_prlimit64, 0, RLIMIT_DATA, &child->data, 0));
  child_require(child, LAUNCH_STEP_LIMIT_CPU, RAW(SYS_prlimit64, 0, RLIMIT_CPU, &child->cpu, 0));
  child_require(child, LAUNCH_STEP_LIMIT_STACK, RAW(SYS_prlimit64, 0, RLIMIT_STACK, &child->stack, 0));

  const kernel_sigset none = 0;
  child_require(child, LAUNCH_STEP_SIGNALS, RAW(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof none));
  char *const environment[] = {NULL};
  child_fail(child, LAUNCH_STEP_EXEC,
             RAW(SYS_execveat, child->binary, "", child->argv, environment, AT_EMPTY_PATH));
}

/* ---- the parent ------------------------------------------------------------------------------------------- */

static int32_t fail(struct launch_result *result, enum launch_step step, int error) {
  result->step = (int32_t)step;
  result->error = error;
  return (int32_t)step;
}

static void close_open(int *fd) {
  if (*fd >= 0) (void)close(*fd);
  *fd = -1;
}

/*
 * A descriptor above stdio for the same thing. A parent that runs with 0, 1 or 2 closed gets those numbers for its
 * pipes, and moving the pipes onto 0, 1, 2 in the child would then overwrite one with another.
 */
static int above_stdio(int fd) {
  if (fd < 0 || fd >= FIRST_PRIVATE_FD) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
  int error = errno;
  (void)close(fd);
  errno = error;
  return moved;
}

static void close_pipes(struct pipe_ends *pipes) {
  for (int fd = 0; fd < 3; fd++) {
    close_open(&pipes->worker[fd]);
    close_open(&pipes->parent[fd]);
  }
}

/*
 * 0 or -errno; after an error nothing is left open. The pipes keep the kernel's 64 KiB: with 256 KiB and 1 MiB, echoing
 * values of 64 KiB to 4 MiB through Node was no faster, since libuv reads 64 KiB at a time.
 */
static int open_pipes(struct pipe_ends *pipes) {
  *pipes = (struct pipe_ends){{-1, -1, -1}, {-1, -1, -1}};
  for (int fd = 0; fd < 3; fd++) {
    int ends[2];
    bool ready = pipe2(ends, O_CLOEXEC) == 0;
    if (ready) {
      pipes->worker[fd] = above_stdio(ends[fd == 0 ? 0 : 1]);
      int error = errno;
      pipes->parent[fd] = above_stdio(ends[fd == 0 ? 1 : 0]);
      if (pipes->worker[fd] < 0) errno = error;
      /* The two ends are two open files: the worker's stays blocking. */
      ready = pipes->worker[fd] >= 0 && pipes->parent[fd] >= 0 && fcntl(pipes->parent[fd], F_SETFL, O_NONBLOCK) == 0;
    }
    if (!ready) {
      int error = errno;
      close_pipes(pipes);
      return -error;
    }
  }
  return 0;
}

/* Lowers *wanted to the inherited hard limit; raising a limit is never tried, not even as root. */
static bool cap_limit(int which, uint64_t *wanted, struct rlimit *out) {
  struct rlimit inherited;
  /* The C libraries disagree on the type of `which`. */
  if (syscall(SYS_prlimit64, 0, which, NULL, &inherited) != 0) return false;
  if (inherited.rlim_max < *wanted) *wanted = inherited.rlim_max;
  *out = (struct rlimit){.rlim_cur = *wanted, .rlim_max = *wanted};
  return true;
}

/*
 * The child's stack: one mapping for the life of the process. Only the main thread launches, and it sleeps while
 * the child uses the stack. Returns its top, NULL without memory.
 */
static char *child_stack_top(void) {
  static char *top;
  if (top != NULL) return top;
  size_t size = CHILD_STACK_GUARD + CHILD_STACK_BYTES;
  char *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) return NULL;
  if (mprotect(base + CHILD_STACK_GUARD, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE) != 0) {
    (void)munmap(base, size);
    return NULL;
  }
  top = base + size;
  return top;
}

/* clone with every signal blocked. Returns the pid and stores the pidfd, or -errno. */
static int clone_child(struct child *child, char *stack_top, int *pidfd) {
  const kernel_sigset all = ~(kernel_sigset)0;
  kernel_sigset before = 0;
  (void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  int pid = clone(child_main, stack_top, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, child, pidfd);
  int error = errno;
  (void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
  return pid > 0 ? pid : -error;
}

/* The parent-death signal is sent when the thread that launched ends, not the process; so only the main thread may. */
static bool on_main_thread(void) {
  return syscall(SYS_gettid) == getpid();
}

static bool exit_status_would_be_lost(void) {
  struct sigaction action;
  if (sigaction(SIGCHLD, NULL, &action) != 0) return true;
  return action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0;
}

/* One of the masks in /proc/self/status; `label` includes what surrounds the name. All ones if it is not there. */
static kernel_sigset mask_in(const char *status, const char *label) {
  const char *line = strstr(status, label);
  if (line == NULL) return ~(kernel_sigset)0;
  const char *digits = line + strlen(label);
  char *end;
  unsigned long long mask = strtoull(digits, &end, 16);
  return end == digits + 16 && *end == '\n' ? mask : ~(kernel_sigset)0;
}

/*
 * The signals this process ignores or handles. Where /proc cannot tell, all: resetting 62 dispositions is then the
 * price, a microsecond each where a hypervisor makes system calls slow.
 */
static kernel_sigset changed_signals(void) {
  char text[4096];
  int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (status < 0) return ~(kernel_sigset)0;
  ssize_t length = read(status, text, sizeof text - 1);
  (void)close(status);
  if (length <= 0) return ~(kernel_sigset)0;
  text[length] = '\0';
  return mask_in(text, "\nSigIgn:\t") | mask_in(text, "\nSigCgt:\t");
}

static bool arguments_in_range(const char *path, const char *const *arguments, uint32_t count) {
  if (path == NULL || path[0] != '/' || count > LAUNCH_ARGUMENTS_MAX) return false;
  size_t length = 0;
  while (path[length] != '\0') {
    if (++length > PATH_LENGTH_MAX) return false;
  }
  for (uint32_t at = 0; at < count; at++) {
    if (arguments[at] == NULL) return false;
  }
  return true;
}

/* Opens the binary. It is executed through this descriptor, so what is checked here is what runs. */
static int open_binary(const char *path, struct launch_result *result) {
  int binary = open(path, O_PATH | O_CLOEXEC);
  if (binary < 0) {
    (void)fail(result, LAUNCH_STEP_OPEN, errno);
    return -1;
  }
  struct stat status;
  bool known = fstat(binary, &status) == 0;
  /* Executing a set-ID file clears the parent-death signal. */
  if (!known || !S_ISREG(status.st_mode) || (status.st_mode & (S_ISUID | S_ISGID)) != 0) {
    (void)fail(result, LAUNCH_STEP_BINARY, known ? 0 : errno);
    close_open(&binary);
    return -1;
  }
  int moved = above_stdio(binary);
  if (moved < 0) (void)fail(result, LAUNCH_STEP_OPEN, errno);
  return moved;
}

/* The child has exited (it reported a failure), is about to, or was killed: waits for it, so that no zombie is left. */
static void collect_failed(int pidfd) {
  siginfo_t ignored;
  while (syscall(SYS_waitid, P_PIDFD, pidfd, &ignored, WEXITED | __WALL, NULL) != 0 && errno == EINTR) {
  }
}

/* From the open binary to the running worker. The pipes and the binary belong to the caller when it fails. */
static int32_t start(struct child *child, struct launch_result *result) {
  char *stack_top = child_stack_top();
  if (stack_top == NULL) return fail(result, LAUNCH_STEP_STACK, errno);
  int pidfd = -1;
  int pid = clone_child(child, stack_top, &pidfd);
  if (pid < 0) return fail(result, LAUNCH_STEP_CLONE, -pid);
  if (child->step != LAUNCH_OK) {
    collect_failed(pidfd);
    (void)close(pidfd);
    return fail(result, (enum launch_step)child->step, child->error);
  }
  int above = pidfd >= FIRST_PRIVATE_FD ? pidfd : fcntl(pidfd, F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD);
  int error = errno;
  if (above < 0) {
    (void)launch_kill(pidfd);
    collect_failed(pidfd);
  }
  if (above != pidfd) (void)close(pidfd);
  if (above < 0) return fail(result, LAUNCH_STEP_CLONE, error);
  result->pid = pid;
  result->pidfd = above;
  return LAUNCH_OK;
}

int32_t launch_worker(const char *path, const char *const *arguments, uint32_t count, struct launch_limits *limits,
                      struct launch_result *result) {
  *result = (struct launch_result){0, 0, -1, -1, -1, -1, -1};
  if (!arguments_in_range(path, arguments, count)) return fail(result, LAUNCH_STEP_ARGUMENTS, 0);
  if (!on_main_thread()) return fail(result, LAUNCH_STEP_THREAD, 0);
  if (exit_status_would_be_lost()) return fail(result, LAUNCH_STEP_CHILD_SIGNAL, 0);

  /* exec takes argv as char *const *, and writes to none of them. */
  char *argv[LAUNCH_ARGUMENTS_MAX + 2] = {(char *)(uintptr_t)path};
  for (uint32_t at = 0; at < count; at++) argv[at + 1] = (char *)(uintptr_t)arguments[at];
  struct child child = {.argv = argv, .changed = changed_signals(), .parent = getpid()};
  if (!cap_limit(RLIMIT_DATA, &limits->data_bytes, &child.data) ||
      !cap_limit(RLIMIT_CPU, &limits->cpu_seconds, &child.cpu) ||
      !cap_limit(RLIMIT_STACK, &limits->stack_bytes, &child.stack)) {
    return fail(result, LAUNCH_STEP_LIMITS, errno);
  }

  child.binary = open_binary(path, result);
  if (child.binary < 0) return result->step;
  struct pipe_ends pipes;
  int error = open_pipes(&pipes);
  if (error < 0) {
    (void)close(child.binary);
    return fail(result, LAUNCH_STEP_PIPES, -error);
  }
  for (int fd = 0; fd < 3; fd++) child.stdio[fd] = pipes.worker[fd];
  int32_t step = start(&child, result);
  if (step == LAUNCH_OK) {
    result->stdin_fd = pipes.parent[0];
    result->stdout_fd = pipes.parent[1];
    result->stderr_fd = pipes.parent[2];
    for (int fd = 0; fd < 3; fd++) pipes.parent[fd] = -1;
  }
  close_pipes(&pipes);
  (void)close(child.binary);
  return step;
}

const char *launch_step_name(int32_t step) {
  static const char *const names[] = {
      "ok",
#define LAUNCH_STEP(name, text) text,
      LAUNCH_STEPS(LAUNCH_STEP)
#undef LAUNCH_STEP
  };
  if (step < 0 || (size_t)step >= sizeof names / sizeof names[0]) return NULL;
  return names[step];
}

int32_t launch_kill(int32_t pidfd) {
  return syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0 ? 0 : -errno;
}

int32_t launch_reap(int32_t pidfd, struct launch_exit *out) {
  siginfo_t info = {.si_pid = 0};
  struct rusage usage;
  /* The system call fills in the child's own usage, which the C library's waitid does not offer. */
  if (syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | WNOHANG | __WALL, &usage) != 0) return -errno;
  if (info.si_pid == 0) return 0;
  bool exited = info.si_code == CLD_EXITED;
  out->code = exited ? info.si_status : -1;
  out->signal = exited ? 0 : info.si_status;
  out->user_us = usage.ru_utime.tv_sec * 1000000LL + usage.ru_utime.tv_usec;
  out->system_us = usage.ru_stime.tv_sec * 1000000LL + usage.ru_stime.tv_usec;
  return 1;
}

int64_t launch_cpu_ns(int32_t pid, int32_t pidfd) {
  if (pid <= 0) return -EINVAL;
  /* The kernel's id of a process's scheduler clock: ~pid << 3 | CPUCLOCK_SCHED. */
  clockid_t clock = (clockid_t)((~(unsigned)pid << 3) | 2U);
  struct timespec used;
  if (syscall(SYS_clock_gettime, clock, &used) != 0) return -(errno == EINVAL ? ESRCH : errno);
  /* As long as the pidfd answers, nobody has collected the process and its pid is not reused: the clock was its own. */
  if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) != 0) return -errno;
  return used.tv_sec * 1000000000LL + used.tv_nsec;
}
