/*
 * What this host offers to a confined worker, asked of the kernel by calls that change nothing.
 * Called by packages/native (hostFacts), which adds what can be read from /proc.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "launch/launch.h"

/* Kernel numbers that older headers lack. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66
#endif

enum {
  HOST_LANDLOCK_VERSION = 1,
  HOST_SECCOMP_SET_FILTER = 1,
  HOST_SECCOMP_ACTION_AVAILABLE = 2,
  HOST_SECCOMP_TSYNC = 1,
  HOST_CLOSE_RANGE_CLOEXEC = 1 << 2,
  HOST_PROC_SUPER_MAGIC = 0x9fa0,
};

static const uint32_t kill_process_action = 0x80000000U;

static int64_t answer(long result) {
  return result < 0 ? -errno : result;
}

/* A filter at address 0: EFAULT means that the kernel knows the call and the flag, and got as far as reading it. */
static int64_t filter_support(unsigned flags) {
  if (syscall(SYS_seccomp, HOST_SECCOMP_SET_FILTER, flags, NULL) == 0) return -EINVAL;
  if (errno == EFAULT) return 1;
  return errno == EINVAL ? 0 : -errno;
}

static uint64_t hard_limit(int which) {
  struct rlimit limit;
  return syscall(SYS_prlimit64, 0, which, NULL, &limit) == 0 ? limit.rlim_max : 0;
}

void launch_host_facts(struct host_facts *out) {
  struct statfs proc;
  out->landlock_abi = answer(syscall(SYS_landlock_create_ruleset, NULL, 0, HOST_LANDLOCK_VERSION));
  out->seccomp_filter = filter_support(0);
  out->seccomp_tsync = filter_support(HOST_SECCOMP_TSYNC);
  out->seccomp_kill_process =
      syscall(SYS_seccomp, HOST_SECCOMP_ACTION_AVAILABLE, 0, &kill_process_action) == 0 ? 1 : -errno;
  out->mdwe = prctl(PR_GET_MDWE, 0L, 0L, 0L, 0L) >= 0 ? 1 : (errno == EINVAL ? 0 : -errno);
  /* An empty range: nothing can be open there. */
  out->close_range_cloexec = syscall(SYS_close_range, ~0U, ~0U, HOST_CLOSE_RANGE_CLOEXEC) == 0 ? 1 : -errno;
  out->own_seccomp_mode = answer(prctl(PR_GET_SECCOMP, 0L, 0L, 0L, 0L));
  out->own_no_new_privs = answer(prctl(PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L));
  out->own_dumpable = answer(prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L));
  out->own_personality = answer(personality(0xffffffffUL));
  out->page_bytes = answer(sysconf(_SC_PAGESIZE));
  out->procfs = statfs("/proc", &proc) == 0 ? (proc.f_type == HOST_PROC_SUPER_MAGIC ? 1 : 0) : -errno;
  out->hard_data_bytes = hard_limit(RLIMIT_DATA);
  out->hard_cpu_seconds = hard_limit(RLIMIT_CPU);
  out->hard_stack_bytes = hard_limit(RLIMIT_STACK);
  out->hard_nofile = hard_limit(RLIMIT_NOFILE);
}
