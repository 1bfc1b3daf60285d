/*
 * Step 1 of the confinement: is this process what a worker must be? (Interface: confine.h, steps_linux.h.)
 *
 * TRUST: everything that the launcher could choose is looked at here — descriptors, environment, personality, the
 * mount on /proc. A check that cannot be made counts as failed. Nothing here changes the process.
 */
#include "../../generated/exit_codes.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "confine.h"
#include "deviations.h"
#include "proc_text.h"
#include "steps_linux.h"

enum {
  AUX_NULL = 0,
  AUX_SECURE = 23,
  PERSONALITY_READ_IMPLIES_EXEC = 0x0400000,
  FCNTL_GET_FLAGS = 3,
  OPEN_READ_ONLY = 0,
  OPEN_WRITE_ONLY = 1,
  OPEN_ACCESS_MODE = 3,
  OPEN_CLOSE_ON_EXEC = 02000000,
  /* What the kernel itself adds to a descriptor that was opened through /proc/self/fd on a 64-bit system. */
  OPEN_LARGE_FILE_X64 = 0100000,
  OPEN_LARGE_FILE_ARM64 = 0400000,
  /* The whole of /proc/self/status; it has about 1,500 bytes, its lists of CPUs and nodes grow on huge machines. */
  STATUS_BYTES_MAX = 16384,
  /* Reads of /proc/self/maps before giving up: a process that was just started has about twenty mappings. */
  MAPS_READS_MAX = 64
};

#define PROC_MAGIC 0x9fa0
#define PIPE_MAGIC 0x50495045

/* The kernel's struct statfs, equal on x86-64 and arm64. */
struct kernel_statfs {
  int64_t type, block_size, blocks, blocks_free, blocks_available, files, files_free;
  int32_t id[2];
  int64_t name_length, fragment_size, flags, spare[4];
};

static bool startup_done;
static long parent;

long startup_parent(void) {
  if (!startup_done) sys_exit_group(EXIT_ATTESTATION);
  return parent;
}

static bool is_on(int fd, int64_t magic) {
  struct kernel_statfs statfs;
  memset(&statfs, 0, sizeof statfs);
  return sys_call(NR_fstatfs, fd, sys_pointer(&statfs), 0, 0, 0, 0) == 0 && statfs.type == magic;
}

/*
 * Opens a file of /proc/self and makes sure that it is one: the file itself must lie on a procfs, so neither another
 * file system on /proc nor a file mounted over the name can stand in for it.
 */
static int open_proc(const char *path) {
  const long fd = sys_open(path, OPEN_READ_ONLY | OPEN_CLOSE_ON_EXEC, 0);
  if (fd < 0 || !is_on((int)fd, PROC_MAGIC)) sys_exit_group(EXIT_PROCFS);
  return (int)fd;
}

/*
 * A blocking end of an anonymous pipe, in the right direction. The file system tells an anonymous pipe from a named
 * one; the flags must be just the direction: with O_NONBLOCK the worker could not wait, O_PATH is no open end.
 */
static void check_pipe(int fd, int direction, int exit_code) {
  const long flags = sys_call(NR_fcntl, fd, FCNTL_GET_FLAGS, 0, 0, 0, 0);
#if defined(__x86_64__)
  const long large = OPEN_LARGE_FILE_X64;
#else
  const long large = OPEN_LARGE_FILE_ARM64;
#endif
  if (flags < 0 || (flags & ~large) != direction || !is_on(fd, PIPE_MAGIC)) sys_exit_group(exit_code);
}

static void check_status(struct welcome *facts) {
  static char text[STATUS_BYTES_MAX];
  const int fd = open_proc("/proc/self/status");
  size_t length = 0;
  for (;;) {
    const long got = sys_read(fd, text + length, sizeof text - length);
    if (got < 0 || length == sizeof text) sys_exit_group(EXIT_PROCFS);
    if (got == 0) break;
    length += (size_t)got;
  }
  (void)sys_close(fd);

  uint64_t threads = 0, tracer = 0;
  if (!status_number(text, length, "Threads", &threads) || threads != 1) sys_exit_group(EXIT_THREADS);
  facts->threads = (uint32_t)threads;
  if (deviates(DEVIATION_TRACED)) return;
  if (!status_number(text, length, "TracerPid", &tracer) || tracer != 0) sys_exit_group(EXIT_TRACER);
}

static uint32_t count_environment(char **envp) {
  uint32_t count = 0;
  while (envp[count] != NULL) count++;
  return count;
}

void startup_check(char **envp, const unsigned long *auxv, struct welcome *facts) {
  memset(facts, 0, sizeof *facts);
  deviate_before_startup();

  for (const unsigned long *aux = auxv; aux[0] != AUX_NULL; aux += 2) {
    if (aux[0] == AUX_SECURE && aux[1] != 0) sys_exit_group(EXIT_SECURE_EXECUTION);
  }
  const long personality = sys_call(NR_personality, 0xffffffff, 0, 0, 0, 0, 0);
  if (personality < 0 || (personality & PERSONALITY_READ_IMPLIES_EXEC) != 0) {
    sys_exit_group(EXIT_READ_IMPLIES_EXEC);
  }
  check_pipe(0, OPEN_READ_ONLY, EXIT_STDIN_END);
  check_pipe(1, OPEN_WRITE_ONLY, EXIT_STDOUT_END);
  check_pipe(2, OPEN_WRITE_ONLY, EXIT_STDERR_END);
  check_status(facts);

  facts->environment_count = count_environment(envp);
  parent = sys_call(NR_getppid, 0, 0, 0, 0, 0, 0);
  startup_done = true;
}

void startup_check_memory_map(void) {
  /* The engine's mappings must have been judged too, so this comes after them, and only after the other checks. */
  if (!startup_done) sys_exit_group(EXIT_ATTESTATION);
  deviate_before_memory_map();
  static char chunk[4096];
  struct maps_reader reader;
  memset(&reader, 0, sizeof reader);
  const int fd = open_proc("/proc/self/maps");
  for (unsigned reads = 0;; reads++) {
    const long got = sys_read(fd, chunk, sizeof chunk);
    if (got < 0 || reads == MAPS_READS_MAX) sys_exit_group(EXIT_MEMORY_MAP);
    if (got == 0) break;
    maps_feed(&reader, chunk, (size_t)got);
  }
  (void)sys_close(fd);
  switch (maps_end(&reader)) {
    case MAPS_CLEAN:
      return;
    case MAPS_WRITABLE_EXECUTABLE:
      sys_exit_group(EXIT_WRITABLE_EXECUTABLE);
    case MAPS_EXECUTABLE_STACK:
      sys_exit_group(EXIT_EXECUTABLE_STACK);
    case MAPS_SHARED:
      sys_exit_group(EXIT_SHARED_MAPPING);
    case MAPS_MALFORMED:
      break;
  }
  sys_exit_group(EXIT_MEMORY_MAP);
}
