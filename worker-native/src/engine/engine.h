/*
 * The script engine as the rest of the worker sees it.
 *
 * Called by: the worker's main, loop and bridge. Implemented by the other files of this folder around the
 * generated C of the engine (QuickJS → WebAssembly → C; worker-native/build/engine/).
 *
 * Trust: everything that lives in the linear memory is the guest's. Every 32-bit number that comes out of
 * the engine (a pointer, a length, a host_ref_id, an argument count) is hostile until engine_span or a
 * comparison with a closed set has passed. The engine's own code cannot write outside its linear memory.
 *
 * Kept true: after engine_reset() nothing that a script did is left, in the linear memory, above it, on the
 * engine's stack or in any C object of this folder (table: engine_state.h).
 *
 * Life of a worker:
 *   engine_map()            once, before confinement (needs mmap, mremap, sigaltstack, rt_sigaction, arch_prctl)
 *   per activation:
 *     engine_run_on_stack(fn, arg)   every qts_… and engine_… call below happens inside such an fn;
 *                                    engine_set_limits(heap, stack) comes first
 *     engine_reset()                 outside of it
 * After engine_map the kernel is asked for nothing but mprotect(NONE | READ+WRITE), madvise(DONTNEED) and exit_group.
 *
 * Values: `uint32_t value` is a pointer into linear memory to an 8-byte JSValue. What a qts_… function
 * returns is owned by the caller (qts_free_value_pointer(ctx, value)), except the pointers of
 * qts_get_undefined/null/true/false and of qts_argv_get_js_value_const_pointer, which are borrowed. A returned 0
 * means that there was no memory for the 8 bytes: treat it as an exception. An exception is a value whose kind is
 * ENGINE_VALUE_EXCEPTION; looking at a kind runs no code of the engine.
 */
#ifndef FLOWCELL_ENGINE_ENGINE_H
#define FLOWCELL_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/native_functions.h"
#include "engine_exports.h" /* generated: qts_eval, qts_call, … as static inline functions, engine_malloc, engine_free */

/*
 * What the image maker wrote down about the pristine image. All are pointers into linear memory.
 * runtime and context are JSRuntime and JSContext; the functions are values that the image owns, made once
 * and never freed: call them with engine_call.
 */
struct engine_image {
  uint32_t runtime;
  uint32_t context;
  uint32_t fn_activate;
  uint32_t fn_start;
  uint32_t fn_refuse;
  uint32_t fn_deliver;
  uint32_t fn_idle;
  uint32_t fn_rejection;
  uint32_t scratch;     /* ENGINE_SCRATCH_BYTES for engine_call and its kin */
  uint32_t script_name; /* the C string "script.js", for qts_eval */
  uint32_t top;         /* bytes of the image, whole 64 KiB pages */
};

/* Constants of the build, except for the image maker, which is finding them out. */
#if defined(ENGINE_IMAGE_MAKER)
#define ENGINE_IMAGE_CONSTANT
#else
#define ENGINE_IMAGE_CONSTANT const
#endif
extern ENGINE_IMAGE_CONSTANT struct engine_image engine_image;

enum {
  ENGINE_PAGE_BYTES = 65536,
  /* The engine measures its stack on the shadow stack in linear memory, of which the module has 5 MiB. For each byte of it
   * the C stack grows by up to 21 (nested parentheses in eval), so the 64 MiB of C stack hold three times the most. */
  ENGINE_STACK_BYTES_MIN = 16 << 10,
  ENGINE_STACK_BYTES_MAX = 1 << 20,
};

/* ---- mapping, limits, reset ------------------------------------------------------------------------------------ */

/*
 * Reserves the linear memory (8 GiB without access), moves the image's pages out of the executable over its
 * start, maps the engine's C stack with its guard and installs the fault handlers on their own stack.
 * 0, or the negative error number of the call that failed: then the worker must exit, nothing is undone.
 */
int engine_map(void);

/*
 * Touches the memory that an activation will, and changes no byte: for a worker that waits. Where the hypervisor keeps
 * shadow page tables, the first access to a page costs 1 to 20 µs although engine_map has populated it, and the first
 * activation makes some hundreds.
 */
void engine_touch(void);

/*
 * The limits of the activation; may be called again to tighten or widen them.
 * heap_bytes: how far linear memory may grow, the image included; rounded down to whole pages. What is already
 * in use stays usable, so a cap below it means that nothing can grow.
 * stack_bytes: the JavaScript stack, clamped to ENGINE_STACK_BYTES_MIN and _MAX.
 * On the engine's stack.
 */
void engine_set_limits(uint32_t heap_bytes, uint32_t stack_bytes);

/* Puts the engine back to its pristine image. Not on the engine's stack. Ends the process with EXIT_FAULT when the
 * kernel refuses: a half-reset engine must not run. */
void engine_reset(void);

/* ---- the engine's stack ---------------------------------------------------------------------------------------- */

/* Runs fn(arg) on the engine's 64 MiB stack and returns when it returns or calls engine_abandon. Does not nest. */
void engine_run_on_stack(void (*fn)(void *), void *arg);

/* Leaves engine_run_on_stack at once from any depth (a host call, the interrupt hook). The engine is torn then: the
 * only legal next call is engine_reset. */
_Noreturn void engine_abandon(void);

/* ---- reports --------------------------------------------------------------------------------------------------- */

uint32_t engine_heap_now(void);  /* bytes of linear memory at present */
uint32_t engine_heap_peak(void); /* the most since the last reset (linear memory never shrinks in between) */
uint32_t engine_gc_runs(void);   /* cycle collections since the last reset */

/*
 * What the engine last ran out of: memory (growth refused, or "out of memory" thrown) or stack ("stack overflow"
 * thrown). Recorded where it happens, by the code that raises it, never read from a message. The bridge clears it
 * when guest code is seen to go on (a sender is called, a job ends normally).
 */
enum engine_failure { ENGINE_FAILURE_NONE = 0, ENGINE_FAILURE_MEMORY = 1, ENGINE_FAILURE_STACK = 2 };
enum engine_failure engine_last_failure(void);
void engine_clear_failure(void);

/* Whether growth was refused at any time since the last reset. From then on the engine may have dropped jobs, which it
 * does without a word when there is no memory to keep them in. */
bool engine_memory_refused(void);

/* ---- looking at linear memory ---------------------------------------------------------------------------------- */

/* The host address of [ptr, ptr + len), or NULL when that is not wholly inside linear memory or ptr is 0.
 * Growth does not move memory; the address is good until the next reset. */
uint8_t *engine_span(uint32_t ptr, uint32_t len);

/* Length of the C string at ptr without its NUL; UINT32_MAX when there is no NUL among the first max + 1 bytes. */
uint32_t engine_cstring_length(uint32_t ptr, uint32_t max);

/* What a value is, by its tag. ENGINE_VALUE_INVALID: the pointer is 0 or not inside linear memory. */
enum engine_value_kind {
  ENGINE_VALUE_INVALID,
  ENGINE_VALUE_UNDEFINED,
  ENGINE_VALUE_NULL,
  ENGINE_VALUE_BOOL,
  ENGINE_VALUE_NUMBER,
  ENGINE_VALUE_STRING,
  ENGINE_VALUE_OBJECT, /* functions too */
  ENGINE_VALUE_EXCEPTION,
  ENGINE_VALUE_OTHER, /* symbols, big integers, the engine's internal kinds */
};
enum engine_value_kind engine_value_kind(uint32_t value);

/* ---- calling into the engine (on its stack) -------------------------------------------------------------------- */

enum { ENGINE_CALL_ARGUMENTS_MAX = 8, ENGINE_SCRATCH_BYTES = 64 };

/* A string value of UTF-8 text without NUL; 0 or an exception when there is no memory. */
uint32_t engine_new_text(const uint8_t *text, uint32_t length);

/* Calls a function value with undefined as `this`; the arguments stay the caller's. */
uint32_t engine_call(uint32_t fn, uint32_t argc, const uint32_t *argv);

/* Calls the image's rejection function (reason, promise, handled) with what bridge_rejection was given, with some stack
 * beyond the script's own. False when it threw, which the prelude's function does only for lack of memory; the
 * exception is dropped. */
bool engine_call_rejection(uint64_t promise, uint64_t reason, int handled);

/* Runs one pending job. 0: none was pending; 1: it ended normally; -1: it threw, which a job of the engine's own
 * promises does only for lack of memory or stack. */
int engine_run_job(void);

/* ---- what the bridge implements -------------------------------------------------------------------------------- */

/*
 * A native function was called by script; host_ref_id says which (native_functions.h). TRUST: all five are numbers
 * of the guest's. Argument i is qts_argv_get_js_value_const_pointer(argv, i) for i < argc.
 * Returns a value that the engine takes over and frees, or 0 for undefined.
 */
uint32_t bridge_host_call(uint32_t ctx, uint32_t this_ptr, uint32_t argc, uint32_t argv, uint32_t host_ref_id);

/* Polled by the engine while script runs, at least every few hundred microseconds outside of native loops. Non-zero
 * makes the engine throw something that script can swallow; a spent budget ends the process instead. */
int bridge_interrupt(void);

/* A promise was rejected without a handler (handled = 0), or got its first handler after that (handled = 1). The two
 * are raw JSValues, alive during the call only. */
void bridge_rejection(uint32_t ctx, uint64_t promise, uint64_t reason, int handled);

/* The guest's clock in milliseconds since 1970. */
double bridge_now_ms(void);

#endif
