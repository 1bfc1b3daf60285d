/*
 * The kernel as bridge_fuzz_test.c plays it: the system calls of the worker's loop, over memory.
 *
 * Found before src/base/sys.h by that test's include path. Same names and meanings; reading comes from the fuzzer's stream,
 * writing goes to its checker, and an exit leaves the round instead of the process.
 */
#ifndef FLOWCELL_BASE_SYS_H
#define FLOWCELL_BASE_SYS_H

#include <stddef.h>
#include <stdint.h>

enum { SYS_EINTR = 4, SYS_CLOCK_THREAD_CPUTIME = 3 };

struct sys_timespec {
  int64_t seconds;
  int64_t nanoseconds;
};

long sys_read(int fd, void *buffer, size_t length);
long sys_write(int fd, const void *buffer, size_t length);
long sys_clock_gettime(int clock, struct sys_timespec *out);
_Noreturn void sys_exit_group(int code);

#endif
