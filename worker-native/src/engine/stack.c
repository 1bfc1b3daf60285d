/*
 * Running on the engine's own C stack, and leaving it.
 *
 * Called by: the worker's activation. The engine needs far more stack than a main thread may have (64 MiB for a
 * JavaScript stack of 1 MiB with every native recursion on top), with a guard whose address the fault handler knows.
 * Kept true: the caller's callee-saved registers and stack pointer come back on both ways out; what the abandoned
 * frames held is dead, and nobody unwinds through them (no code here or in the engine registers clean-up).
 */
#include "base/sys.h"
#include "engine/engine_state.h"
#include "exit_codes.h"

/* engine_stack_enter(fn, arg, stack, &saved): saves the stack pointer and calls fn(arg) on `stack`.
 * engine_stack_leave(saved): returns from the engine_stack_enter that wrote `saved`. */
void engine_stack_enter(void (*fn)(void *), void *arg, uint8_t *stack, void **saved);
_Noreturn void engine_stack_leave(void *saved);

#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".type engine_stack_enter, @function\n"
    ".hidden engine_stack_enter\n"
    ".globl engine_stack_enter\n"
    "engine_stack_enter:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rcx)\n"
    "  movq %rsp, %rbp\n" /* callee-saved: fn gives it back */
    "  movq %rdx, %rsp\n"
    "  movq %rdi, %rax\n"
    "  movq %rsi, %rdi\n"
    "  callq *%rax\n"
    "  movq %rbp, %rdi\n"
    ".size engine_stack_enter, .-engine_stack_enter\n"
    ".type engine_stack_leave, @function\n"
    ".hidden engine_stack_leave\n"
    ".globl engine_stack_leave\n"
    "engine_stack_leave:\n"
    "  movq %rdi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  retq\n"
    ".size engine_stack_leave, .-engine_stack_leave\n");
#else
__asm__(
    ".text\n"
    ".type engine_stack_enter, %function\n"
    ".hidden engine_stack_enter\n"
    ".globl engine_stack_enter\n"
    "engine_stack_enter:\n"
    "  stp x29, x30, [sp, #-160]!\n"
    "  stp x19, x20, [sp, #16]\n"
    "  stp x21, x22, [sp, #32]\n"
    "  stp x23, x24, [sp, #48]\n"
    "  stp x25, x26, [sp, #64]\n"
    "  stp x27, x28, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n"
    "  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n"
    "  stp d14, d15, [sp, #144]\n"
    "  mov x4, sp\n"
    "  str x4, [x3]\n"
    "  mov x19, x4\n" /* callee-saved: fn gives it back */
    "  mov sp, x2\n"
    "  mov x4, x0\n"
    "  mov x0, x1\n"
    "  blr x4\n"
    "  mov x0, x19\n"
    ".size engine_stack_enter, .-engine_stack_enter\n"
    ".type engine_stack_leave, %function\n"
    ".hidden engine_stack_leave\n"
    ".globl engine_stack_leave\n"
    "engine_stack_leave:\n"
    "  mov sp, x0\n"
    "  ldp x19, x20, [sp, #16]\n"
    "  ldp x21, x22, [sp, #32]\n"
    "  ldp x23, x24, [sp, #48]\n"
    "  ldp x25, x26, [sp, #64]\n"
    "  ldp x27, x28, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n"
    "  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n"
    "  ldp d14, d15, [sp, #144]\n"
    "  ldp x29, x30, [sp], #160\n"
    "  ret\n"
    ".size engine_stack_leave, .-engine_stack_leave\n");
#endif

void engine_run_on_stack(void (*fn)(void *), void *arg) {
  if (engine_stack.return_stack_pointer != NULL) sys_exit_group(EXIT_FAULT);
  uint8_t *const top = engine_stack.guard + ENGINE_GUARD_BYTES + ENGINE_C_STACK_BYTES;
  engine_stack_enter(fn, arg, top, &engine_stack.return_stack_pointer);
  engine_stack.return_stack_pointer = NULL;
}

_Noreturn void engine_abandon(void) {
  if (engine_stack.return_stack_pointer == NULL) sys_exit_group(EXIT_FAULT);
  engine_stack_leave(engine_stack.return_stack_pointer);
}
