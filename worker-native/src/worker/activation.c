/*
 * One activation; see activation.h.
 *
 * The whole activation runs on the engine's stack, reading its frames as it goes, and leaves it by engine_abandon
 * when Finished or Refused has been sent. Order: the frame's text (header and input) is read into linear memory
 * under the widest cap, since what is needed to set the limits follows it; then the limits; then the script; then
 * everything runs under them.
 */
#include "worker/activation.h"

#include "base/mem.h"
#include "base/sys.h"
#include "engine/engine.h"
#include "exit_codes.h"
#include "protocol.h"
#include "worker/bridge.h"
#include "worker/input.h"
#include "worker/output.h"

/* A frame's bytes behind its header that are not consumed yet. */
struct remainder {
  uint32_t bytes;
};

static void remainder_take(struct remainder *rest, uint32_t length) {
  if (length > rest->bytes) sys_exit_group(EXIT_PROTOCOL);
  rest->bytes -= length;
}

/* Drops what is left of the frame, so that the stream stays in step, and ends the activation for lack of memory. */
static _Noreturn void activation_out_of_memory(const struct remainder *rest) {
  input_discard(rest->bytes);
  bridge_finish_exhausted(BRIDGE_EXHAUSTED_MEMORY);
}

/* Reads `length` bytes into fresh linear memory, with a NUL behind them; a pointer that engine_free takes. */
static uint32_t activation_read(struct remainder *rest, uint32_t length) {
  remainder_take(rest, length);
  uint32_t target = length < UINT32_MAX ? engine_malloc(length + 1) : 0;
  uint8_t *span = engine_span(target, length + 1);
  if (span == NULL) {
    input_discard(length);
    activation_out_of_memory(rest);
  }
  input_take(span, length);
  span[length] = 0;
  return target;
}

/* Reads text into a string value. JSON and devalue text hold no NUL; one would cut the text short unseen. */
static uint32_t activation_read_text(struct remainder *rest, uint32_t length) {
  uint32_t bytes = activation_read(rest, length);
  if (engine_cstring_length(bytes, length) != length) sys_exit_group(EXIT_PROTOCOL);
  uint32_t value = qts_new_string(engine_image.context, bytes);
  engine_free(bytes);
  if (value == 0 || engine_value_kind(value) == ENGINE_VALUE_EXCEPTION) activation_out_of_memory(rest);
  return value;
}

/* Reads all that is left of the frame, its attachments with their lengths, into an ArrayBuffer value. */
static uint32_t activation_read_attachments(struct remainder *rest) {
  uint32_t length = rest->bytes;
  if (length == 0) return qts_get_undefined();
  uint32_t bytes = activation_read(rest, length);
  uint32_t value = qts_new_array_buffer(engine_image.context, bytes, length);
  if (value == 0 || engine_value_kind(value) == ENGINE_VALUE_EXCEPTION) activation_out_of_memory(rest);
  return value;
}

static uint32_t activation_part_length(struct remainder *rest) {
  uint8_t bytes[4];
  remainder_take(rest, sizeof bytes);
  input_take(bytes, sizeof bytes);
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint32_t activation_flag(bool flag) { return flag ? qts_get_true() : qts_get_false(); }

/* Calls a function of the prelude; its own failure ends the activation. */
static void activation_call(uint32_t fn, uint32_t argc, const uint32_t *argv) {
  uint32_t result = engine_call(fn, argc, argv);
  enum engine_value_kind kind = engine_value_kind(result);
  if (kind == ENGINE_VALUE_INVALID || kind == ENGINE_VALUE_EXCEPTION) bridge_finish_failed();
  qts_free_value_pointer(engine_image.context, result);
}

/* Runs what is runnable, then lets the prelude say how things stand: Finished, or Blocked. */
static void activation_settle(void) {
  do {
    while (engine_run_job() != 0) {
    }
    const uint32_t refused = activation_flag(engine_memory_refused());
    activation_call(engine_image.fn_idle, 1, &refused);
  } while (qts_is_job_pending(engine_image.runtime) != 0);
}

/* The budget struct, attachment 0. */
static void activation_read_budget(struct remainder *rest, bool *single_use) {
  struct activate_budget budget;
  if (activation_part_length(rest) != sizeof budget) sys_exit_group(EXIT_PROTOCOL);
  remainder_take(rest, sizeof budget);
  input_take((uint8_t *)&budget, sizeof budget);
  if (budget.size != sizeof budget || budget.flags > ACTIVATE_BUDGET_FLAGS_MAX) sys_exit_group(EXIT_PROTOCOL);
  *single_use = budget.flags != 0;
  bridge_set_budget(budget.cpu_budget_us, budget.heap_bytes, budget.stack_bytes);
  engine_set_limits(budget.heap_bytes, budget.stack_bytes);
  /* Less than the engine itself takes: the script would run on what happens to be free in there. */
  if (budget.heap_bytes < engine_image.top) activation_out_of_memory(rest);
}

/* The script, attachment 1. */
static uint32_t activation_read_script(struct remainder *rest, uint32_t *length) {
  *length = activation_part_length(rest);
  return activation_read(rest, *length);
}

/* Evaluates the script to the function it stands for and starts it. Evaluating runs no code of the guest's: the
 * text is a function expression, so only a text that does not parse (or memory) can make it fail. */
static void activation_start(uint32_t source, uint32_t length) {
  uint32_t context = engine_image.context;
  uint32_t fn = qts_eval(context, source, length, engine_image.script_name, 0, 0);
  engine_free(source);
  if (engine_value_kind(fn) == ENGINE_VALUE_INVALID) bridge_finish_failed();
  if (engine_value_kind(fn) != ENGINE_VALUE_EXCEPTION) {
    activation_call(engine_image.fn_start, 1, &fn);
    qts_free_value_pointer(context, fn);
    return;
  }
  if (engine_last_failure() != ENGINE_FAILURE_NONE) bridge_finish_failed();
  uint32_t error = qts_resolve_exception(context, fn);
  activation_call(engine_image.fn_refuse, 1, &error);
  sys_exit_group(EXIT_SENDER); /* refuse() sends Refused, which does not return */
}

static void activation_deliver(const struct frame_header *frame) {
  struct remainder rest = {frame->rest_length};
  uint32_t text = activation_read_text(&rest, frame->text_length);
  uint32_t attachments = activation_read_attachments(&rest);
  const uint32_t arguments[] = {text, attachments, activation_flag((frame->flags & FRAME_FLAG_DEVALUE) != 0)};
  activation_call(engine_image.fn_deliver, 3, arguments);
  qts_free_value_pointer(engine_image.context, text);
  if (frame->attachment_count > 0) qts_free_value_pointer(engine_image.context, attachments);
}

/* What activation_main is given and what it finds out before the script starts. */
struct activation {
  struct frame_header frame;
  bool single_use;
};

/* The activation itself, on the engine's stack. */
static void activation_main(void *argument) {
  struct activation *activation = argument;
  const struct frame_header *frame = &activation->frame;
  struct remainder rest = {frame->rest_length};
  uint32_t length;
  engine_set_limits(UINT32_MAX, ENGINE_STACK_BYTES_MAX);
  uint32_t text = activation_read_text(&rest, frame->text_length);
  activation_read_budget(&rest, &activation->single_use);
  uint32_t source = activation_read_script(&rest, &length);
  uint32_t attachments = activation_read_attachments(&rest);
  const uint32_t arguments[] = {text, attachments, activation_flag((frame->flags & FRAME_FLAG_DEVALUE) != 0)};
  activation_call(engine_image.fn_activate, 3, arguments);
  qts_free_value_pointer(engine_image.context, text);
  activation_start(source, length);
  for (;;) {
    activation_settle();
    output_flush();
    struct frame_header next;
    input_frame(&next, false);
    if (next.type != MESSAGE_DELIVER) sys_exit_group(EXIT_PROTOCOL);
    activation_deliver(&next);
  }
}

void activation_run(const struct frame_header *activate) {
  struct activation activation = {.frame = *activate, .single_use = false};
  bridge_begin();
  engine_run_on_stack(activation_main, &activation);
  /* A pristine image is of no use to a process that ends, and costs it a page fault for every page written. */
  if (activation.single_use) sys_exit_group(0);
  engine_reset();
}
