/*
 * Values and calls: what the bridge needs beyond the engine's own exports.
 *
 * Called by: the worker's activation and bridge, on the engine's stack.
 * Trust: nothing that is read from linear memory is believed beyond its tag; a pointer is checked before it is read.
 */
#include "base/mem.h"
#include "engine/engine_state.h"

/* The upper half of a JSValue is its tag, or part of a number's bits (tags below TAG_FIRST or from TAG_NUMBERS on are
 * floating-point numbers). The image maker checks the tags against live values. */
enum {
  TAG_FIRST = -9, /* big integer */
  TAG_STRING = -7,
  TAG_STRING_ROPE = -6,
  TAG_OBJECT = -1,
  TAG_INT = 0,
  TAG_BOOL = 1,
  TAG_NULL = 2,
  TAG_UNDEFINED = 3,
  TAG_EXCEPTION = 6,
  TAG_NUMBERS = 8,
};

enum { VALUE_BYTES = 8 };

/* Places in engine_image.scratch: the argument array, then up to three values that the arguments point to. */
enum { SCRATCH_VALUES = ENGINE_CALL_ARGUMENTS_MAX * 4, SCRATCH_CONTEXT = SCRATCH_VALUES + 3 * VALUE_BYTES };
_Static_assert(SCRATCH_CONTEXT + 4 <= ENGINE_SCRATCH_BYTES, "scratch holds arguments, values and a context");

/* On top of the script's own stack, for the prelude's rejection function. */
enum { REJECTION_STACK_BYTES = 64 << 10 };

static uint64_t value_bits(const uint8_t *span) {
  uint64_t bits;
  memcpy(&bits, span, sizeof bits);
  return bits;
}

enum engine_value_kind engine_value_kind(uint32_t value) {
  const uint8_t *span = engine_span(value, VALUE_BYTES);
  if (span == NULL) return ENGINE_VALUE_INVALID;
  const int32_t tag = (int32_t)(uint32_t)(value_bits(span) >> 32);
  switch (tag) {
    case TAG_STRING:
    case TAG_STRING_ROPE:
      return ENGINE_VALUE_STRING;
    case TAG_OBJECT:
      return ENGINE_VALUE_OBJECT;
    case TAG_INT:
      return ENGINE_VALUE_NUMBER;
    case TAG_BOOL:
      return ENGINE_VALUE_BOOL;
    case TAG_NULL:
      return ENGINE_VALUE_NULL;
    case TAG_UNDEFINED:
      return ENGINE_VALUE_UNDEFINED;
    case TAG_EXCEPTION:
      return ENGINE_VALUE_EXCEPTION;
    default:
      return tag < TAG_FIRST || tag >= TAG_NUMBERS ? ENGINE_VALUE_NUMBER : ENGINE_VALUE_OTHER;
  }
}

uint32_t engine_new_text(const uint8_t *text, uint32_t length) {
  if (length == UINT32_MAX) return 0;
  const uint32_t copy = engine_malloc(length + 1);
  uint8_t *span = engine_span(copy, length + 1);
  if (span == NULL) return 0;
  memcpy(span, text, length);
  span[length] = 0;
  const uint32_t value = qts_new_string(engine_image.context, copy);
  engine_free(copy);
  return value;
}

uint32_t engine_call(uint32_t fn, uint32_t argc, const uint32_t *argv) {
  const uint32_t count = argc <= ENGINE_CALL_ARGUMENTS_MAX ? argc : ENGINE_CALL_ARGUMENTS_MAX;
  /* The engine copies the arguments before it runs anything, so a call inside this call may reuse the array. */
  for (uint32_t at = 0; at < count; at++) engine_write32(engine_image.scratch, 4 * at, argv[at]);
  return qts_call(engine_image.context, fn, qts_get_undefined(), count, engine_image.scratch);
}

/* Drops a result; an exception that is pending is taken out of the runtime first. True when it was a result. */
static bool drop_result(uint32_t result) {
  const enum engine_value_kind kind = engine_value_kind(result);
  if (kind == ENGINE_VALUE_INVALID) return false;
  if (kind == ENGINE_VALUE_EXCEPTION) {
    const uint32_t error = qts_resolve_exception(engine_image.context, result);
    if (error != 0) qts_free_value_pointer(engine_image.context, error);
  }
  qts_free_value_pointer(engine_image.context, result);
  return kind != ENGINE_VALUE_EXCEPTION;
}

bool engine_call_rejection(uint64_t promise, uint64_t reason, int handled) {
  const uint64_t values[] = {reason, promise,
                             (uint64_t)TAG_BOOL << 32 | (uint64_t)(handled != 0)};
  uint32_t arguments[3];
  for (uint32_t at = 0; at < 3; at++) {
    arguments[at] = engine_image.scratch + SCRATCH_VALUES + at * VALUE_BYTES;
    memcpy(engine_memory.data + arguments[at], &values[at], VALUE_BYTES);
  }
  /* A promise may be rejected because the stack is used up; its report must not fail for the same reason. */
  qts_runtime_set_max_stack_size(engine_image.runtime, engine_state.stack_bytes + REJECTION_STACK_BYTES);
  const bool called = drop_result(engine_call(engine_image.fn_rejection, 3, arguments));
  qts_runtime_set_max_stack_size(engine_image.runtime, engine_state.stack_bytes);
  return called;
}

int engine_run_job(void) {
  if (qts_is_job_pending(engine_image.runtime) == 0) return 0;
  const uint32_t result =
      qts_execute_pending_job(engine_image.runtime, 1, engine_image.scratch + SCRATCH_CONTEXT);
  /* The number of jobs that ran, or what the job threw. */
  const uint8_t *span = engine_span(result, VALUE_BYTES);
  if (span == NULL) return -1;
  const uint64_t bits = value_bits(span);
  qts_free_value_pointer(engine_image.context, result);
  return bits >> 32 == TAG_INT ? 1 : -1;
}

enum engine_failure engine_last_failure(void) { return engine_state.failure; }

void engine_clear_failure(void) { engine_state.failure = ENGINE_FAILURE_NONE; }

bool engine_memory_refused(void) { return engine_state.refused; }
