/*
 * The confinement of a worker on Linux: confine_enter, one straight numbered sequence, and its steps.
 *
 * The order matters: what needs /proc comes first, giving up root comes before the limits that bind only ordinary
 * users, no_new_privs before Landlock and seccomp that demand it, and the filter last, because it refuses every call
 * the steps are made of. Two independent layers: the filter is the boundary; Landlock would still deny files and TCP
 * if the filter had a hole. TRUST: the kernel's answers, and nothing else.
 */
#include "confine.h"

#include "../../generated/exit_codes.h"
#include "../../generated/landlock_rights.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "bpf.h"
#include "deviations.h"
#include "landlock.h"
#include "sha256.h"
#include "steps_linux.h"

#if defined(__x86_64__)
#include "../../generated/seccomp_x64.h"
#define SECCOMP_TABLE SECCOMP_TABLE_X64
#else
#include "../../generated/seccomp_arm64.h"
#define SECCOMP_TABLE SECCOMP_TABLE_ARM64
#endif

enum {
  NOBODY = 65534,
  SIGNAL_KILL = 9,
  PR_SET_PARENT_DEATH_SIGNAL = 1,
  PR_GET_PARENT_DEATH_SIGNAL = 2,
  PR_GET_DUMPABLE = 3,
  PR_SET_DUMPABLE = 4,
  PR_SET_NO_NEW_PRIVS = 38,
  PR_GET_NO_NEW_PRIVS = 39,
  PR_CAP_AMBIENT = 47,
  PR_CAP_AMBIENT_IS_SET = 1,
  PR_CAP_AMBIENT_CLEAR_ALL = 4,
  PR_GET_SPECULATION_CONTROL = 52,
  PR_SET_SPECULATION_CONTROL = 53,
  PR_SPECULATION_STORE_BYPASS = 0,
  PR_SPECULATION_INDIRECT_BRANCH = 1,
  PR_SPECULATION_L1D_FLUSH = 2,
  PR_SPECULATION_ENABLE = 2,
  PR_SPECULATION_FORCE_DISABLE = 8,
  PR_SET_MDWE = 65,
  PR_GET_MDWE = 66,
  PR_MDWE_REFUSE_EXEC_GAIN = 1,
  CAPABILITY_VERSION_3 = 0x20080522,
  LIMIT_CPU = 0,
  LIMIT_FSIZE = 1,
  LIMIT_DATA = 2,
  LIMIT_STACK = 3,
  LIMIT_CORE = 4,
  LIMIT_NPROC = 6,
  LIMIT_NOFILE = 7,
  LIMIT_MEMLOCK = 8,
  LIMIT_SIGPENDING = 11,
  LIMIT_MSGQUEUE = 12,
  LIMIT_NICE = 13,
  LIMIT_RTPRIO = 14,
  FCNTL_GET_DESCRIPTOR_FLAGS = 1,
  LANDLOCK_CREATE_VERSION = 1,
  SECCOMP_SET_MODE_FILTER = 1,
  SECCOMP_GET_ACTION_AVAILABLE = 2,
  SECCOMP_FLAG_TSYNC = 1,
  STDIO_DESCRIPTORS = 7,
  DESCRIPTORS_LOOKED_AT = 63
};

struct kernel_limit {
  uint64_t soft, hard;
};

struct kernel_filter {
  uint16_t length;
  const struct bpf_instruction *instructions;
};

struct capability_header {
  uint32_t version;
  int32_t pid;
};

/* The low words of the three sets, then the high words. */
struct capability_sets {
  struct {
    uint32_t effective, permitted, inheritable;
  } word[2];
};

struct identity {
  uint32_t real, effective, saved;
};

/* ── the order ── */

void confine_enter(struct welcome *facts, bool landlock_optional) {
  /* 1. The memory map as the engine left it; the other startup checks are behind us (startup_check). */
  startup_check_memory_map();

  /* 2. Nothing that the parent may have leaked stays open. */
  if (!deviates(DEVIATION_SKIP_DESCRIPTORS)) step_close_descriptors(EXIT_DESCRIPTORS);

  /* 3. Identity, then what it takes with it (the parent-death signal), limits, and the process attributes. */
  step_drop_identity();
  step_parent_death();
  if (!deviates(DEVIATION_SKIP_LIMITS)) step_limits();
  if (!deviates(DEVIATION_SKIP_NO_NEW_PRIVS)) step_no_new_privs();
  if (!deviates(DEVIATION_SKIP_DUMPABLE)) step_not_dumpable();
  if (!deviates(DEVIATION_SKIP_MDWE)) step_deny_write_execute(facts);
  step_speculation(facts);

  /* 4. Second layer: no file, no TCP, no signal and no socket beyond this process. */
  if (!deviates(DEVIATION_SKIP_LANDLOCK)) step_landlock(facts, landlock_optional);

  /* 5. The ruleset's descriptor must not survive, and no other can be opened. Then the kernel is asked for all. */
  if (!deviates(DEVIATION_SKIP_DESCRIPTORS)) step_close_descriptors(EXIT_DESCRIPTORS_AGAIN);
  if (!deviates(DEVIATION_SKIP_LIMITS)) step_last_limit();
  attest(facts);

  /* 6. The boundary. */
  if (!deviates(DEVIATION_SKIP_SECCOMP)) step_seccomp(facts);
}

/* ── 2 and 5: descriptors ── */

void step_close_descriptors(int exit_code) {
  if (sys_close_range(3, ~0u, 0) != 0) sys_exit_group(exit_code);
}

/* Bit n: descriptor n is open. */
static uint64_t open_descriptors(void) {
  uint64_t mask = 0;
  for (int fd = 0; fd < DESCRIPTORS_LOOKED_AT; fd++) {
    if (sys_call(NR_fcntl, fd, FCNTL_GET_DESCRIPTOR_FLAGS, 0, 0, 0, 0) >= 0) mask |= UINT64_C(1) << fd;
  }
  return mask;
}

/* ── 3: identity and process attributes ── */

static struct identity identity(long call) {
  struct identity id = {~0u, ~0u, ~0u};
  if (sys_call(call, sys_pointer(&id.real), sys_pointer(&id.effective), sys_pointer(&id.saved), 0, 0, 0) != 0) {
    sys_exit_group(EXIT_IDENTITY);
  }
  return id;
}

static bool has_root(struct identity id) { return id.real == 0 || id.effective == 0 || id.saved == 0; }

/*
 * Root becomes nobody, groups first because afterwards it may not. An ordinary user keeps its ids (it can change
 * nothing about them) but loses whatever capabilities it was started with, ambient ones included.
 */
void step_drop_identity(void) {
  if (has_root(identity(NR_getresuid))) {
    if (sys_call(NR_setgroups, 0, 0, 0, 0, 0, 0) != 0 ||
        sys_call(NR_setresgid, NOBODY, NOBODY, NOBODY, 0, 0, 0) != 0 ||
        sys_call(NR_setresuid, NOBODY, NOBODY, NOBODY, 0, 0, 0) != 0) {
      sys_exit_group(EXIT_IDENTITY);
    }
  }
  const struct capability_header header = {.version = CAPABILITY_VERSION_3, .pid = 0};
  struct capability_sets none;
  memset(&none, 0, sizeof none);
  if (sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 ||
      sys_call(NR_capset, sys_pointer(&header), sys_pointer(&none), 0, 0, 0, 0) != 0) {
    sys_exit_group(EXIT_IDENTITY);
  }
}

/*
 * Changing the identity cleared the signal that the launcher had armed. If the parent died in between, nobody would
 * ever send it: hence the second look at who the parent is.
 */
void step_parent_death(void) {
  if (sys_prctl(PR_SET_PARENT_DEATH_SIGNAL, SIGNAL_KILL, 0, 0, 0) != 0 ||
      sys_call(NR_getppid, 0, 0, 0, 0, 0, 0) != startup_parent()) {
    sys_exit_group(EXIT_PARENT_DEATH);
  }
}

static void set_limit(int resource, uint64_t value) {
  const struct kernel_limit limit = {value, value};
  if (sys_call(NR_prlimit64, 0, resource, sys_pointer(&limit), 0, 0, 0) != 0) sys_exit_group(EXIT_LIMITS);
}

/*
 * Those of the launcher (CORE, DATA, CPU, STACK) are set; these are the ones that would have hindered it or the
 * steps so far.
 */
void step_limits(void) {
  set_limit(LIMIT_CORE, 0);
  set_limit(LIMIT_FSIZE, 0);
  set_limit(LIMIT_NPROC, 0);
  set_limit(LIMIT_MEMLOCK, 0);
  set_limit(LIMIT_MSGQUEUE, 0);
  set_limit(LIMIT_SIGPENDING, 0);
  set_limit(LIMIT_NICE, 0);
  set_limit(LIMIT_RTPRIO, 0);
}

/* Only after Landlock, whose ruleset is a fourth descriptor. */
void step_last_limit(void) { set_limit(LIMIT_NOFILE, 3); }

void step_no_new_privs(void) {
  if (sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) sys_exit_group(EXIT_NO_NEW_PRIVS);
}

/* No core dump, no ptrace and no /proc/<pid>/mem for anyone without CAP_SYS_PTRACE, the parent included. */
void step_not_dumpable(void) {
  if (sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) sys_exit_group(EXIT_DUMPABLE);
}

/* Linux 6.3 and newer; EINVAL before. */
void step_deny_write_execute(struct welcome *facts) {
  const long result = sys_prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
  if (result == -SYS_EINVAL) return;
  if (result != 0 || sys_prctl(PR_GET_MDWE, 0, 0, 0, 0) != PR_MDWE_REFUSE_EXEC_GAIN) {
    sys_exit_group(EXIT_MEMORY_DENY_WRITE_EXECUTE);
  }
  facts->mdwe = true;
}

/*
 * Since Linux 5.16 a filter no longer switches these on by itself. A processor that needs no mitigation, a boot
 * option that fixed it, or a kernel without the control answers with one of these errors.
 */
static void control_speculation(unsigned long feature, unsigned long control) {
  const long result = sys_prctl(PR_SET_SPECULATION_CONTROL, feature, control, 0, 0);
  if (result != 0 && result != -SYS_ENXIO && result != -SYS_EPERM && result != -SYS_ENODEV &&
      result != -SYS_EINVAL && result != -SYS_ERANGE) {
    sys_exit_group(EXIT_SPECULATION);
  }
}

static uint32_t speculation_state(unsigned long feature) {
  const long state = sys_prctl(PR_GET_SPECULATION_CONTROL, feature, 0, 0, 0);
  return state >= 0 ? (uint32_t)state : 0;
}

void step_speculation(struct welcome *facts) {
  control_speculation(PR_SPECULATION_STORE_BYPASS, PR_SPECULATION_FORCE_DISABLE);
  control_speculation(PR_SPECULATION_INDIRECT_BRANCH, PR_SPECULATION_FORCE_DISABLE);
  /* For this one "enable" means: flush the cache on every switch to another process. */
  control_speculation(PR_SPECULATION_L1D_FLUSH, PR_SPECULATION_ENABLE);
  facts->spec_store_bypass = speculation_state(PR_SPECULATION_STORE_BYPASS);
  facts->spec_indirect_branch = speculation_state(PR_SPECULATION_INDIRECT_BRANCH);
}

/* ── 4: Landlock ── */

void step_landlock(struct welcome *facts, bool landlock_optional) {
  long abi = sys_call(NR_landlock_create_ruleset, 0, 0, LANDLOCK_CREATE_VERSION, 0, 0, 0);
  if (abi == -SYS_ENOSYS || abi == -SYS_EOPNOTSUPP) {
    if (!landlock_optional) sys_exit_group(EXIT_LANDLOCK_MISSING);
    return;
  }
  if (abi < 1) sys_exit_group(EXIT_LANDLOCK_RULESET);
  if (abi > LANDLOCK_ABI_KNOWN) abi = LANDLOCK_ABI_KNOWN;

  /* No rule is added: every right that is handled is denied. */
  struct landlock_attributes rights;
  const size_t size = landlock_rights(abi, &rights);
  const long ruleset = sys_call(NR_landlock_create_ruleset, sys_pointer(&rights), (long)size, 0, 0, 0, 0);
  if (ruleset < 0) sys_exit_group(EXIT_LANDLOCK_RULESET);
  const long result = sys_call(NR_landlock_restrict_self, ruleset, 0, 0, 0, 0, 0);
  if (result == -SYS_E2BIG) sys_exit_group(EXIT_LANDLOCK_LAYERS);
  if (result != 0) sys_exit_group(EXIT_LANDLOCK_RESTRICT);
  facts->landlock_abi = (uint32_t)abi;
}

/* ── 5: attestation ── */

static uint64_t limit(int resource) {
  struct kernel_limit value = {0, 0};
  if (sys_call(NR_prlimit64, 0, resource, 0, sys_pointer(&value), 0, 0) != 0 || value.soft > value.hard) {
    sys_exit_group(EXIT_ATTESTATION);
  }
  /* The hard limit is what the process could raise itself to. */
  return value.hard;
}

static uint64_t ambient_capabilities(void) {
  uint64_t set = 0;
  for (unsigned long capability = 0; capability < 64; capability++) {
    /* EINVAL past the last capability that the kernel knows. */
    if (sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1) set |= UINT64_C(1) << capability;
  }
  return set;
}

static void attest_identity(struct welcome *facts) {
  const struct identity user = identity(NR_getresuid);
  const struct identity group = identity(NR_getresgid);
  const long groups = sys_call(NR_getgroups, 0, 0, 0, 0, 0, 0);
  const struct capability_header header = {.version = CAPABILITY_VERSION_3, .pid = 0};
  struct capability_sets sets;
  memset(&sets, 0xff, sizeof sets);
  if (sys_call(NR_capget, sys_pointer(&header), sys_pointer(&sets), 0, 0, 0, 0) != 0 || groups < 0) {
    sys_exit_group(EXIT_ATTESTATION);
  }
  facts->uid = user.effective;
  facts->gid = group.effective;
  facts->groups = (uint32_t)groups;
  facts->cap_effective = sets.word[0].effective | (uint64_t)sets.word[1].effective << 32;
  facts->cap_permitted = sets.word[0].permitted | (uint64_t)sets.word[1].permitted << 32;
  facts->cap_inheritable = sets.word[0].inheritable | (uint64_t)sets.word[1].inheritable << 32;
  facts->cap_ambient = ambient_capabilities();
  if (has_root(user) || user.real != user.effective || user.saved != user.effective ||
      group.real != group.effective || group.saved != group.effective || facts->cap_effective != 0 ||
      facts->cap_permitted != 0 || facts->cap_inheritable != 0 || facts->cap_ambient != 0) {
    sys_exit_group(EXIT_ATTESTATION);
  }
}

static void attest_limits(struct welcome *facts) {
  facts->limit_core = limit(LIMIT_CORE);
  facts->limit_data = limit(LIMIT_DATA);
  facts->limit_cpu = limit(LIMIT_CPU);
  facts->limit_stack = limit(LIMIT_STACK);
  facts->limit_nofile = limit(LIMIT_NOFILE);
  facts->limit_fsize = limit(LIMIT_FSIZE);
  facts->limit_nproc = limit(LIMIT_NPROC);
  if (deviates(DEVIATION_SKIP_LIMITS)) return;
  if (facts->limit_core != 0 || facts->limit_nofile != 3 || facts->limit_fsize != 0 || facts->limit_nproc != 0) {
    sys_exit_group(EXIT_ATTESTATION);
  }
}

void attest(struct welcome *facts) {
  attest_identity(facts);
  attest_limits(facts);
  facts->no_new_privs = sys_prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  facts->dumpable = sys_prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0;
  if (!facts->no_new_privs && !deviates(DEVIATION_SKIP_NO_NEW_PRIVS)) sys_exit_group(EXIT_ATTESTATION);
  if (facts->dumpable && !deviates(DEVIATION_SKIP_DUMPABLE)) sys_exit_group(EXIT_ATTESTATION);
  int32_t signal = 0;
  if (sys_prctl(PR_GET_PARENT_DEATH_SIGNAL, (unsigned long)sys_pointer(&signal), 0, 0, 0) != 0 ||
      signal != SIGNAL_KILL) {
    sys_exit_group(EXIT_ATTESTATION);
  }
  facts->descriptors = open_descriptors();
  if (facts->descriptors != STDIO_DESCRIPTORS && !deviates(DEVIATION_SKIP_DESCRIPTORS)) {
    sys_exit_group(EXIT_DESCRIPTORS_AGAIN);
  }
}

/* ── 6: seccomp ── */

void step_seccomp(struct welcome *facts) {
  static struct bpf_instruction program[BPF_INSTRUCTIONS_MAX];
  const size_t length = bpf_build(&SECCOMP_TABLE, program, BPF_INSTRUCTIONS_MAX);
  if (length == 0) sys_exit_group(EXIT_SECCOMP_PROGRAM);
  /* Both architectures are little-endian, so the bytes in memory are those of the reference dump. */
  sha256((const uint8_t *)program, length * sizeof program[0], facts->seccomp_sha256);
  facts->seccomp_length = (uint32_t)length;

  const uint32_t action = SECCOMP_RETURN_KILL_PROCESS;
  if (sys_call(NR_seccomp, SECCOMP_GET_ACTION_AVAILABLE, 0, sys_pointer(&action), 0, 0, 0) != 0) {
    sys_exit_group(EXIT_SECCOMP_UNAVAILABLE);
  }
  const struct kernel_filter filter = {.length = (uint16_t)length, .instructions = program};
  /* Not zero can also be the id of a thread that could not be synchronised. */
  if (sys_call(NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FLAG_TSYNC, sys_pointer(&filter), 0, 0, 0) != 0) {
    sys_exit_group(EXIT_SECCOMP_INSTALL);
  }
  facts->seccomp_tsync = true;
}
