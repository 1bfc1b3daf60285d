/* The deviations of test builds (deviations.h). Empty in the shipped binaries. */
#include "deviations.h"

#if defined(FLOWCELL_TEST_BUILD)

#include <stddef.h>
#include <stdint.h>

#include "../base/sys.h"
#include "../base/text.h"

static uint32_t deviations;

bool deviation_argument(const char *argument) {
  static const struct {
    const char *text;
    enum deviation deviation;
  } known[] = {
#define DEVIATION_ROW(name, text) {text, DEVIATION_##name},
      DEVIATIONS(DEVIATION_ROW)
#undef DEVIATION_ROW
  };
  const char *name = text_after(argument, "--test-deviation=");
  if (name == NULL) return false;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (text_equal(name, known[i].text)) {
      deviations |= 1u << known[i].deviation;
      return true;
    }
  }
  return false;
}

bool deviates(enum deviation deviation) { return (deviations >> deviation & 1) != 0; }

/*
 * A thread that only waits. The raw call returns twice on the same stack, so the child must not return into C: it
 * pauses in the very asm statement that made it.
 */
static void start_thread(void) {
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
      "jnz 2f\n"
      "1: movl $34, %%eax\n" /* pause */
      "syscall\n"
      "jmp 1b\n"
      "2:\n"
      : "=a"(result)
      : "0"((long)NR_clone), "D"(flags), "S"(stack + sizeof stack), "d"(0L)
      : "rcx", "r8", "r10", "r11", "memory");
#else
  register long x8 __asm__("x8") = NR_clone;
  register long x0 __asm__("x0") = flags;
  register long x1 __asm__("x1") = (long)(intptr_t)(stack + sizeof stack);
  __asm__ volatile(
      "mov x2, #0\n"
      "mov x3, #0\n"
      "mov x4, #0\n"
      "svc 0\n"
      "cbnz x0, 2f\n"
      "1: mov x0, #0\n" /* ppoll(NULL, 0, NULL, NULL): waits for ever */
      "mov x1, #0\n"
      "mov x2, #0\n"
      "mov x3, #0\n"
      "mov x8, #73\n"
      "svc 0\n"
      "b 1b\n"
      "2:\n"
      : "+r"(x0), "+r"(x1), "+r"(x8)
      :
      : "x2", "x3", "x4", "memory");
#endif
}

void deviate_before_startup(void) {
  if (deviates(DEVIATION_EXTRA_THREAD)) start_thread();
  if (deviates(DEVIATION_EXEC_PERSONALITY)) (void)sys_call(NR_personality, 0x0400000, 0, 0, 0, 0, 0);
}

void deviate_before_memory_map(void) {
  if (deviates(DEVIATION_SHARED_MAPPING)) {
    (void)sys_mmap(NULL, 4096, SYS_PROT_READ | SYS_PROT_WRITE, SYS_MAP_SHARED | SYS_MAP_ANONYMOUS, -1, 0);
  }
}

#else
typedef int deviations_are_for_test_builds_only;
#endif
