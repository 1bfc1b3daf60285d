/*
 * Raw Linux system calls, the only way in which the worker, the probe and the launcher speak to the kernel.
 *
 * Called by everything freestanding; compiles hosted as well. No libc, no errno: every function returns what the
 * kernel returned, which for a failure is the negative error number. The numbers come from one table per
 * architecture (sysno_x64.h, sysno_arm64.h). What a caller passes reaches the kernel unchanged; nothing here
 * checks an argument, because the seccomp filter is what judges calls.
 */
#ifndef FLOWCELL_BASE_SYS_H
#define FLOWCELL_BASE_SYS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "sysno_x64.h"
#elif defined(__aarch64__)
#include "sysno_arm64.h"
#else
#error "flowcell workers exist for x86-64 and arm64"
#endif

/* Error numbers that code branches on; equal on both architectures. */
enum {
  SYS_EPERM = 1,
  SYS_ENOENT = 2,
  SYS_ESRCH = 3,
  SYS_EINTR = 4,
  SYS_ENXIO = 6,
  SYS_E2BIG = 7,
  SYS_EBADF = 9,
  SYS_EAGAIN = 11,
  SYS_ENOMEM = 12,
  SYS_EACCES = 13,
  SYS_EFAULT = 14,
  SYS_ENODEV = 19,
  SYS_EINVAL = 22,
  SYS_EMFILE = 24,
  SYS_EPIPE = 32,
  SYS_ERANGE = 34,
  SYS_ENOSYS = 38,
  SYS_EOPNOTSUPP = 95
};

enum {
  SYS_PROT_NONE = 0,
  SYS_PROT_READ = 1,
  SYS_PROT_WRITE = 2,
  SYS_PROT_EXEC = 4,
  SYS_MAP_SHARED = 0x01,
  SYS_MAP_PRIVATE = 0x02,
  SYS_MAP_FIXED = 0x10,
  SYS_MAP_ANONYMOUS = 0x20,
  SYS_MAP_NORESERVE = 0x4000,
  SYS_MREMAP_MAYMOVE = 1,
  SYS_MREMAP_FIXED = 2,
  SYS_MADV_DONTNEED = 4,
  SYS_CLOCK_MONOTONIC = 1,
  SYS_CLOCK_PROCESS_CPUTIME = 2,
  SYS_CLOCK_THREAD_CPUTIME = 3,
  SYS_AT_FDCWD = -100
};

struct sys_timespec {
  int64_t seconds;
  int64_t nanoseconds;
};

/* One call with all six argument registers; unused ones are passed as zero so that a trace is reproducible. */
static inline long sys_call(long nr, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = nr;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
#endif
}

static inline long sys_pointer(const void *pointer) { return (long)(intptr_t)pointer; }

static inline long sys_read(int fd, void *buffer, size_t length) {
  return sys_call(NR_read, fd, sys_pointer(buffer), (long)length, 0, 0, 0);
}

static inline long sys_write(int fd, const void *buffer, size_t length) {
  return sys_call(NR_write, fd, sys_pointer(buffer), (long)length, 0, 0, 0);
}

/* openat from the working directory: arm64 has no open. */
static inline long sys_open(const char *path, int flags, int mode) {
  return sys_call(NR_openat, SYS_AT_FDCWD, sys_pointer(path), flags, mode, 0, 0);
}

static inline long sys_close(int fd) { return sys_call(NR_close, fd, 0, 0, 0, 0, 0); }

static inline long sys_close_range(unsigned first, unsigned last, unsigned flags) {
  return sys_call(NR_close_range, (long)first, (long)last, (long)flags, 0, 0, 0);
}

/* The address, or a negative error number between -4095 and -1. */
static inline long sys_mmap(void *address, size_t length, int prot, int flags, int fd, int64_t offset) {
  return sys_call(NR_mmap, sys_pointer(address), (long)length, prot, flags, fd, (long)offset);
}

static inline long sys_mprotect(void *address, size_t length, int prot) {
  return sys_call(NR_mprotect, sys_pointer(address), (long)length, prot, 0, 0, 0);
}

static inline long sys_munmap(void *address, size_t length) {
  return sys_call(NR_munmap, sys_pointer(address), (long)length, 0, 0, 0, 0);
}

static inline long sys_mremap(void *old_address, size_t old_length, size_t new_length, int flags,
                              void *new_address) {
  return sys_call(NR_mremap, sys_pointer(old_address), (long)old_length, (long)new_length, flags,
                  sys_pointer(new_address), 0);
}

static inline long sys_madvise(void *address, size_t length, int advice) {
  return sys_call(NR_madvise, sys_pointer(address), (long)length, advice, 0, 0, 0);
}

static inline long sys_clock_gettime(int clock, struct sys_timespec *out) {
  return sys_call(NR_clock_gettime, clock, sys_pointer(out), 0, 0, 0, 0);
}

static inline long sys_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  return sys_call(NR_prctl, option, (long)a, (long)b, (long)c, (long)d, 0);
}

_Noreturn static inline void sys_exit_group(int code) {
  for (;;) {
    (void)sys_call(NR_exit_group, code, 0, 0, 0, 0, 0);
    /* A filter that refused exit_group has already killed the process; anything else must still not return. */
    __builtin_trap();
  }
}

#endif
