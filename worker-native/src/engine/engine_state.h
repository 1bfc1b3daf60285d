/*
 * Every mutable C object of the engine's side of the worker, and how it gets back to its pristine state.
 *
 * Included by the files of this folder only. A test takes the writable symbols from the object files and fails
 * when one is not named in this table.
 *
 * | object | what | reset |
 * |---|---|---|
 * | engine_instance | the module's shadow stack pointer, two constant pointers | engine_reset: pointer of the image |
 * | engine_memory | where linear memory is, how much is accessible | engine_reset: size of the image |
 * | engine_linear_base | the same address once more, for the generated code | constant after engine_map |
 * | engine_state | limits, failure, collector | engine_reset: nothing failed, no growth until engine_set_limits |
 * | engine_stack | place of the C stack; where to return to | constant after engine_map; NULL outside of a run |
 * | engine_fault_stack | where the fault handlers run | used only by a process that is about to end |
 *
 * Outside of C objects: linear memory and the C stack themselves; engine_reset drops their pages. The function table
 * and the image's constants are in memory that start-up makes read-only.
 */
#ifndef FLOWCELL_ENGINE_ENGINE_STATE_H
#define FLOWCELL_ENGINE_ENGINE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine_module.h" /* generated: struct w2c_engine and the prototypes of imports and exports */

/* Linear memory plus the largest static offset of the generated code must lie within; the build asserts it. */
#define ENGINE_RESERVED_BYTES (UINT64_C(8) << 30)
/* Below the C stack. No frame of the generated code is larger than 2 KiB and each touches its pages in order. */
#define ENGINE_GUARD_BYTES (UINT64_C(1) << 20)
#define ENGINE_C_STACK_BYTES (UINT64_C(64) << 20)

struct engine_state {
  uint64_t heap_bytes_max; /* the cap on linear memory, whole pages */
  uint64_t collect_at;     /* bytes allocated by the engine at which it is asked to collect cycles */
  uint32_t stack_bytes;    /* the JavaScript stack */
  uint32_t gc_runs;
  bool collecting; /* asked and not yet seen done */
  bool refused;    /* growth has been refused; stays so until the reset */
  enum engine_failure failure;
};

struct engine_stack {
  uint8_t *guard;           /* lowest address: the guard, then the stack */
  void *return_stack_pointer; /* of the caller of engine_run_on_stack */
};

extern struct w2c_engine engine_instance;
extern wasm_rt_memory_t engine_memory;
extern struct engine_state engine_state;
extern struct engine_stack engine_stack;

/* What the image maker found in the runtime and in the pristine instance, beyond engine_image. */
struct engine_layout {
  uint32_t stack_pointer;  /* the shadow stack's pointer */
  uint32_t def_malloc;     /* rows of the function table: the engine's own allocator functions */
  uint32_t def_free;
  uint32_t def_realloc;
};
extern ENGINE_IMAGE_CONSTANT struct engine_layout engine_layout;

/*
 * How each part of the image is restored. A page that is dropped costs a page fault when it is next touched, which is
 * more than restoring it in place, a hundred times more on some virtual machines. So what is likely to be touched again is
 * restored in place, and a page that was only read stays the page cache's.
 */
enum engine_part_kind {
  ENGINE_PART_DROP,    /* zeros that are seldom written: dropped */
  ENGINE_PART_CLEAR,   /* zeros that most activations write: overwritten with zeros */
  ENGINE_PART_COMPARE, /* bytes of the image: those pages that differ are overwritten */
  ENGINE_PART_COPY,    /* bytes of the image that every activation writes: overwritten */
};
struct engine_part {
  uint32_t from, to; /* whole ENGINE_STEP_BYTES */
  enum engine_part_kind kind;
};

/* All of [0, top), in order; written by the image maker. The bytes of the parts that are compared and copied are stored
 * one after the other, twice: in the section that becomes linear memory, and to restore from. */
extern const struct engine_part engine_parts[];
extern const uint32_t engine_part_count;
extern uint8_t engine_image_start[];
extern const uint8_t engine_pristine[];

/* A multiple of every page size of the architecture. */
#if defined(__x86_64__)
enum { ENGINE_STEP_BYTES = 4096 };
#else
enum { ENGINE_STEP_BYTES = 65536 };
#endif

/* Of the C stack, what a reset clears instead of dropping: more than a small script uses. */
enum { ENGINE_STACK_KEPT_BYTES = 64 << 10 };

/* Reserves linear memory, maps the C stack, installs the fault handlers. 0 or a negative error number. */
int engine_reserve(void);

/* Makes [0, bytes) of linear memory accessible and its size. 0 or a negative error number. */
int engine_open(uint64_t bytes);

/* The C objects as they are before an activation; engine_reset does this and the memory areas. */
void engine_reset_state(void);

/* Decides anew, from the cap and from what is allocated, when to collect next. */
void engine_collector_plan(void);

/* Fault handlers for the memory areas above, on their own stack. */
int engine_install_fault_handlers(void);

/* Ends the process for a fault of the engine: EXIT_ENGINE_TRAP, or EXIT_ENGINE_MEMORY after a refusal of memory, since
 * QuickJS does not survive each of those (its compiler goes on with half-written code). */
_Noreturn void engine_trap(void);

/* Growth to at least `bytes` within the cap; false records the failure. */
bool engine_grow(uint64_t bytes);

/* Replacements for the engine's allocator functions and its rejection tracker: rows of the function table. */
uint32_t engine_js_malloc(void *instance, uint32_t state, uint32_t size);
void engine_js_free(void *instance, uint32_t state, uint32_t ptr);
uint32_t engine_js_realloc(void *instance, uint32_t state, uint32_t ptr, uint32_t size);
uint32_t engine_js_usable_size(void *instance, uint32_t ptr);
void engine_rejection_tracker(void *instance, uint32_t ctx, uint64_t promise, uint64_t reason, uint32_t handled,
                              uint32_t opaque);

/* Reads and writes of linear memory at offsets that the engine's own structures have. The sum of two 32-bit numbers
 * lies within the reservation; outside of linear memory it faults, as it would in the engine's code. */
static inline uint32_t engine_read32(uint32_t base, uint32_t offset) {
  uint32_t value;
  __builtin_memcpy(&value, engine_memory.data + ((uint64_t)base + offset), sizeof value);
  return value;
}

static inline void engine_write32(uint32_t base, uint32_t offset, uint32_t value) {
  __builtin_memcpy(engine_memory.data + ((uint64_t)base + offset), &value, sizeof value);
}

/* Offsets in QuickJS's JSRuntime (2025-09-13, 32-bit). The image maker checks each one against a live runtime. */
enum {
  RUNTIME_MALLOC = 0, /* four rows of the function table: malloc, free, realloc, usable size */
  RUNTIME_FREE = 4,
  RUNTIME_REALLOC = 8,
  RUNTIME_USABLE_SIZE = 12,
  RUNTIME_MALLOC_STATE = 16, /* count, size, limit, opaque */
  RUNTIME_GC_THRESHOLD = 108,
  RUNTIME_STACK_SIZE = 120,
  RUNTIME_INTERRUPT_HANDLER = 152,
  RUNTIME_REJECTION_TRACKER = 160,
};
enum { MALLOC_STATE_COUNT = 0, MALLOC_STATE_SIZE = 4 };

#endif
