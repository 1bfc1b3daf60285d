/*
 * How the process ends when the engine faults: the exit code tells which memory was touched.
 *
 * Called by: engine_reserve (installing), the kernel (handler), the generated code (wasm_rt_trap).
 * The handler runs on a stack of its own, since the fault may be that the C stack is used up. It looks at nothing but
 * the address and makes no call but exit_group, which the system call filter admits; it never returns, so rt_sigreturn
 * is not needed.
 */
#include "base/sys.h"
#include "engine/engine_state.h"
#include "exit_codes.h"

enum { SIGNAL_BUS = 7, SIGNAL_SEGV = 11 };
enum { ACTION_SIGINFO = 4, ACTION_ONSTACK = 0x08000000, ACTION_RESTORER = 0x04000000 };

/* Large enough for the register state of processors to come: 11 KiB with today's largest vector registers. */
static uint8_t engine_fault_stack[64 << 10] __attribute__((aligned(64)));

/* The kernel's structures; struct sigaction of the C library is another one. */
struct kernel_action {
  void (*handler)(int, const uint8_t *, void *);
  uint64_t flags;
#if defined(__x86_64__)
  void (*restorer)(void);
#endif
  uint64_t mask;
};
struct kernel_stack {
  void *base;
  int32_t flags;
  uint32_t padding;
  uint64_t bytes;
};

static bool within(uint64_t address, const uint8_t *start, uint64_t bytes) {
  return address - (uint64_t)(uintptr_t)start < bytes;
}

_Noreturn void engine_trap(void) { sys_exit_group(engine_state.refused ? EXIT_ENGINE_MEMORY : EXIT_ENGINE_TRAP); }

/* Not instrumented: at this point nothing about the process is certain. */
__attribute__((no_stack_protector)) static _Noreturn void on_fault(int signal, const uint8_t *info, void *context) {
  uint64_t address;
  (void)signal;
  (void)context;
  __builtin_memcpy(&address, info + 16, sizeof address); /* si_addr */
  if (within(address, engine_memory.data, ENGINE_RESERVED_BYTES)) engine_trap();
  if (within(address, engine_stack.guard, ENGINE_GUARD_BYTES)) sys_exit_group(EXIT_STACK_GUARD);
  sys_exit_group(EXIT_FAULT);
}

#if defined(__x86_64__)
/* The kernel on x86-64 insists on a return address for handlers; ours do not return. */
static _Noreturn void no_return(void) { sys_exit_group(EXIT_FAULT); }
#endif

int engine_install_fault_handlers(void) {
  const struct kernel_stack stack = {.base = engine_fault_stack, .bytes = sizeof engine_fault_stack};
  long result = sys_call(NR_sigaltstack, sys_pointer(&stack), 0, 0, 0, 0, 0);
  if (result < 0) return (int)result;
  const struct kernel_action action = {
      .handler = on_fault,
#if defined(__x86_64__)
      .flags = ACTION_SIGINFO | ACTION_ONSTACK | ACTION_RESTORER,
      .restorer = no_return,
#else
      .flags = ACTION_SIGINFO | ACTION_ONSTACK,
#endif
      .mask = ~UINT64_C(0),
  };
  static const int signals[] = {SIGNAL_SEGV, SIGNAL_BUS};
  for (unsigned at = 0; at < sizeof signals / sizeof signals[0]; at++) {
    result = sys_call(NR_rt_sigaction, signals[at], sys_pointer(&action), 0, sizeof action.mask, 0, 0);
    if (result < 0) return (int)result;
  }
  return 0;
}

_Noreturn void wasm_rt_trap(wasm_rt_trap_t code) {
  (void)code;
  engine_trap();
}
