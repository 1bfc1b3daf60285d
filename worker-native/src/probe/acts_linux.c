/* Acts of the probe that are more than one plain system call (probe.h). */
#include "../base/mem.h"
#include "../base/sys.h"
#include "probe.h"

/*
 * A real thread with a stack of its own. It ends in the very asm statement that made it, because the new thread must
 * not return into C code whose frame lies on the other stack.
 */
long act_start_thread(void) {
  static uint8_t stack[4096] __attribute__((aligned(16)));
  /* CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM */
  const long flags = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000;
#if defined(__x86_64__)
  long result;
  __asm__ volatile(
      "xorl %%r10d, %%r10d\n"
      "xorl %%r8d, %%r8d\n"
      "syscall\n"
      "testq %%rax, %%rax\n"
      "jnz 1f\n"
      "xorl %%edi, %%edi\n"
      "movl $60, %%eax\n" /* exit: this thread only */
      "syscall\n"
      "1:\n"
      : "=a"(result)
      : "0"((long)NR_clone), "D"(flags), "S"(stack + sizeof stack), "d"(0L)
      : "rcx", "r8", "r10", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = NR_clone;
  register long x0 __asm__("x0") = flags;
  register long x1 __asm__("x1") = (long)(intptr_t)(stack + sizeof stack);
  __asm__ volatile(
      "mov x2, #0\n"
      "mov x3, #0\n"
      "mov x4, #0\n"
      "svc 0\n"
      "cbnz x0, 1f\n"
      "mov x8, #93\n" /* exit: this thread only */
      "svc 0\n"
      "1:\n"
      : "+r"(x0), "+r"(x1), "+r"(x8)
      :
      : "x2", "x3", "x4", "memory");
  return x0;
#endif
}

struct filter_instruction {
  uint16_t code;
  uint8_t jump_true, jump_false;
  uint32_t value;
};

long act_set_allow_all_filter(void) {
  static const struct filter_instruction allow = {0x06, 0, 0, 0x7fff0000};
  static struct {
    uint16_t length;
    const struct filter_instruction *instructions;
  } program;
  program.length = 1;
  program.instructions = &allow;
  return sys_call(NR_seccomp, 1, 0, sys_pointer(&program), 0, 0, 0);
}

long act_null_write(void) {
  volatile uintptr_t address = 8;
  *(volatile int *)address = 1;
  return 0;
}

long act_trap(void) { __builtin_trap(); }

/* Executes data: a `ret` on the stack. */
long act_call_own_stack(void) {
#if defined(__x86_64__)
  volatile uint8_t code[16] = {0xc3};
#else
  volatile uint32_t code[4] = {0xd65f03c0};
#endif
  void (*volatile call)(void) = (void (*)(void))(uintptr_t)code;
  call();
  return 0;
}

/*
 * More CPU time than the limit of one second, then success; the limit ends it first. Far more, because the kernel
 * holds the limit against a clock of its own, which counts in ticks.
 */
long act_spin(void) {
  struct sys_timespec now = {0, 0};
  do {
    for (volatile int i = 0; i < 1000000; i = i + 1) {
    }
    const long result = sys_clock_gettime(SYS_CLOCK_THREAD_CPUTIME, &now);
    if (result != 0) return result;
  } while (now.seconds * 10 + now.nanoseconds / 100000000 < 26);
  return 0;
}

/* A quarter of the reserved gibibyte made writable at once: more than the data limit, less than the machine. */
long act_grow_memory(void) {
  return sys_mprotect((void *)probe_resource(MEMORY_RESERVED), 256u << 20, SYS_PROT_READ | SYS_PROT_WRITE);
}

/* The kernel looks at the low 32 bits of a number; so does the filter. */
long act_number_with_high_bit(void) {
  return sys_call((long)(UINT64_C(1) << 32 | NR_getpid), 0, 0, 0, 0, 0, 0);
}

long act_read_with_high_bit(void) {
  return sys_call((long)(UINT64_C(1) << 32 | NR_read), 0, sys_pointer(probe_buffer), 0, 0, 0, 0);
}

#if defined(__x86_64__)
long act_x32_getpid(void) { return sys_call(0x40000000 | NR_getpid, 0, 0, 0, 0, 0, 0); }

long act_x32_read(void) { return sys_call(0x40000000 | NR_read, 0, sys_pointer(probe_buffer), 0, 0, 0, 0); }

long act_int80_getpid(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "0"(20L), "b"(0L) : "r8", "r9", "r10", "r11", "memory");
  return result;
}

long act_vsyscall_time(void) {
  long (*volatile call)(long *) = (long (*)(long *))UINT64_C(0xffffffffff600400);
  return call(NULL) > 0 ? 0 : -SYS_EINVAL;
}

long act_vsyscall_getcpu(void) {
  long (*volatile call)(unsigned *, unsigned *, void *) =
      (long (*)(unsigned *, unsigned *, void *))UINT64_C(0xffffffffff600800);
  unsigned cpu = 0, node = 0;
  return call(&cpu, &node, NULL);
}

long act_rdtsc(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return 0;
}

long act_cpuid(void) {
  uint32_t a = 0, b, c = 0, d;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return 0;
}

long act_rdpmc(void) {
  uint32_t low, high;
  __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(0));
  return 0;
}

long act_cli(void) {
  __asm__ volatile("cli");
  return 0;
}

long act_port_read(void) {
  uint8_t value;
  __asm__ volatile("inb $0x80, %0" : "=a"(value));
  return 0;
}
#endif
