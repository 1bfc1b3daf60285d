/*
 * Back to the pristine image: what makes one activation leave nothing to the next.
 *
 * Called by: the worker between activations, not on the engine's stack. Trusts the kernel and the executable; nothing
 * that the engine left is read.
 * Kept true: afterwards every byte of linear memory is the image's or out of reach, the C stack is zero, and the C objects
 * of engine_state.h are as they were before the first activation. It does not matter in what state the engine was left.
 */
#include "base/mem.h"
#include "base/sys.h"
#include "engine/engine_state.h"
#include "exit_codes.h"

/* A step of the reset that the kernel refuses leaves the worker neither old nor new. */
static void must_succeed(long result) {
  if (result < 0) sys_exit_group(EXIT_FAULT);
}

static void drop(uint8_t *from, uint64_t bytes) {
  if (bytes > 0) must_succeed(sys_madvise(from, bytes, SYS_MADV_DONTNEED));
}

typedef uint64_t __attribute__((vector_size(16), may_alias)) vector;

/* Whether two steps' worth of bytes are equal. Reads all of them before it says so: most are. */
static bool is_equal_step(const uint8_t *left, const uint8_t *right) {
  const vector *a = (const vector *)(const void *)__builtin_assume_aligned(left, 16);
  const vector *b = (const vector *)(const void *)__builtin_assume_aligned(right, 16);
  vector difference = {0, 0};
  for (size_t at = 0; at < ENGINE_STEP_BYTES / sizeof(vector); at += 4) {
    difference |= (a[at] ^ b[at]) | (a[at + 1] ^ b[at + 1]) | (a[at + 2] ^ b[at + 2]) | (a[at + 3] ^ b[at + 3]);
  }
  return (difference[0] | difference[1]) == 0;
}

static void compare_and_copy(uint8_t *to, const uint8_t *pristine, uint32_t bytes) {
  for (uint32_t at = 0; at < bytes; at += ENGINE_STEP_BYTES) {
    if (!is_equal_step(to + at, pristine + at)) memcpy(to + at, pristine + at, ENGINE_STEP_BYTES);
  }
}

/* [0, top) of linear memory is the image again. */
static void restore_image(void) {
  const uint8_t *pristine = engine_pristine;
  for (uint32_t at = 0; at < engine_part_count; at++) {
    const struct engine_part part = engine_parts[at];
    uint8_t *const to = engine_memory.data + part.from;
    const uint32_t bytes = part.to - part.from;
    switch (part.kind) {
      case ENGINE_PART_DROP:
        drop(to, bytes);
        break;
      case ENGINE_PART_CLEAR:
        memset(to, 0, bytes);
        break;
      case ENGINE_PART_COMPARE:
        compare_and_copy(to, pristine, bytes);
        pristine += bytes;
        break;
      case ENGINE_PART_COPY:
        memcpy(to, pristine, bytes);
        pristine += bytes;
        break;
    }
  }
}

void engine_reset_state(void) {
  engine_memory.size = engine_image.top;
  engine_instance.w2c_g0 = engine_layout.stack_pointer;
  engine_state = (struct engine_state){.heap_bytes_max = engine_image.top, .collect_at = UINT64_MAX};
}

void engine_reset(void) {
  const uint64_t top = engine_image.top;
  const uint64_t size = engine_memory.size;
  if (engine_stack.return_stack_pointer != NULL) sys_exit_group(EXIT_FAULT);
  restore_image();
  if (size > top) {
    drop(engine_memory.data + top, size - top);
    must_succeed(sys_mprotect(engine_memory.data + top, size - top, SYS_PROT_NONE));
  }
  uint8_t *const stack = engine_stack.guard + ENGINE_GUARD_BYTES;
  drop(stack, ENGINE_C_STACK_BYTES - ENGINE_STACK_KEPT_BYTES);
  memset(stack + ENGINE_C_STACK_BYTES - ENGINE_STACK_KEPT_BYTES, 0, ENGINE_STACK_KEPT_BYTES);
  engine_reset_state();
}

