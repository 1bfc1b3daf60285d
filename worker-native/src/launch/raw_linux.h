/*
 * System calls without the C library, for the child between clone and exec. It shares the parent's memory,
 * thread-local storage and all: a library call there could take a lock that another thread of the parent holds, or
 * write the parent's errno. Returns -errno.
 */
#ifndef FLOWCELL_LAUNCH_RAW_LINUX_H
#define FLOWCELL_LAUNCH_RAW_LINUX_H

/*
 * On functions of the child. Each launch starts over on a stack that the one before never left by returning;
 * AddressSanitizer would take its marks on those abandoned frames for errors.
 */
#define ON_CHILD_STACK __attribute__((no_sanitize("address")))

ON_CHILD_STACK static inline long raw_call5(long number, long a, long b, long c, long d, long e) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
#else
#error "the launcher knows x86-64 and arm64"
#endif
}

#define RAW(number, ...) RAW_PICK(__VA_ARGS__, RAW_5, RAW_4, RAW_3, RAW_2, RAW_1)(number, __VA_ARGS__)
#define RAW_PICK(a, b, c, d, e, name, ...) name
#define RAW_1(n, a) raw_call5(n, (long)(a), 0, 0, 0, 0)
#define RAW_2(n, a, b) raw_call5(n, (long)(a), (long)(b), 0, 0, 0)
#define RAW_3(n, a, b, c) raw_call5(n, (long)(a), (long)(b), (long)(c), 0, 0)
#define RAW_4(n, a, b, c, d) raw_call5(n, (long)(a), (long)(b), (long)(c), (long)(d), 0)
#define RAW_5(n, a, b, c, d, e) raw_call5(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

#endif
