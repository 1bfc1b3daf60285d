/*
 * The engine as bridge_fuzz_test.c plays it: one that was subverted and answers whatever it likes.
 *
 * Found before src/engine/engine.h by that test's include path. The functions are those that the bridge and the activation
 * use, with the same names and meanings; worker-native/src/engine/engine.h documents them.
 */
#ifndef FLOWCELL_ENGINE_ENGINE_H
#define FLOWCELL_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/native_functions.h"

enum { ENGINE_STACK_BYTES_MAX = 4 << 20 };

struct engine_image {
  uint32_t runtime, context, fn_activate, fn_start, fn_refuse, fn_deliver, fn_idle, fn_rejection, scratch, script_name, top;
};
extern const struct engine_image engine_image;

enum engine_failure { ENGINE_FAILURE_NONE, ENGINE_FAILURE_MEMORY, ENGINE_FAILURE_STACK };

enum engine_value_kind {
  ENGINE_VALUE_INVALID,
  ENGINE_VALUE_UNDEFINED,
  ENGINE_VALUE_NULL,
  ENGINE_VALUE_BOOL,
  ENGINE_VALUE_NUMBER,
  ENGINE_VALUE_STRING,
  ENGINE_VALUE_OBJECT,
  ENGINE_VALUE_EXCEPTION,
  ENGINE_VALUE_OTHER,
};

void engine_set_limits(uint32_t heap_bytes, uint32_t stack_bytes);
void engine_reset(void);
void engine_run_on_stack(void (*fn)(void *), void *arg);
_Noreturn void engine_abandon(void);
uint32_t engine_heap_now(void);
uint32_t engine_heap_peak(void);
uint32_t engine_gc_runs(void);
enum engine_failure engine_last_failure(void);
void engine_clear_failure(void);
bool engine_memory_refused(void);
uint8_t *engine_span(uint32_t ptr, uint32_t len);
uint32_t engine_cstring_length(uint32_t ptr, uint32_t max);
enum engine_value_kind engine_value_kind(uint32_t value);
uint32_t engine_malloc(uint32_t bytes);
void engine_free(uint32_t ptr);
uint32_t engine_new_text(const uint8_t *text, uint32_t length);
uint32_t engine_call(uint32_t fn, uint32_t argc, const uint32_t *argv);
bool engine_call_rejection(uint64_t promise, uint64_t reason, int handled);
int engine_run_job(void);

uint32_t qts_argv_get_js_value_const_pointer(uint32_t argv, uint32_t index);
uint32_t qts_eval(uint32_t ctx, uint32_t code, uint32_t length, uint32_t filename, uint32_t detect, uint32_t flags);
void qts_free_c_string(uint32_t ctx, uint32_t string);
void qts_free_value_pointer(uint32_t ctx, uint32_t value);
uint32_t qts_get_array_buffer(uint32_t ctx, uint32_t value);
uint32_t qts_get_array_buffer_length(uint32_t ctx, uint32_t value);
uint32_t qts_get_false(void);
uint32_t qts_get_true(void);
uint32_t qts_get_undefined(void);
uint32_t qts_get_string(uint32_t ctx, uint32_t value);
uint32_t qts_is_job_pending(uint32_t runtime);
uint32_t qts_new_array_buffer(uint32_t ctx, uint32_t bytes, uint32_t length);
uint32_t qts_new_float64(uint32_t ctx, double number);
uint32_t qts_new_string(uint32_t ctx, uint32_t text);
uint32_t qts_resolve_exception(uint32_t ctx, uint32_t value);

uint32_t bridge_host_call(uint32_t ctx, uint32_t this_ptr, uint32_t argc, uint32_t argv, uint32_t host_ref_id);
int bridge_interrupt(void);
void bridge_rejection(uint32_t ctx, uint64_t promise, uint64_t reason, int handled);
double bridge_now_ms(void);

#endif
