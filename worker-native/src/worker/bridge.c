/* What script may do to the outside; see bridge.h. */
#include "worker/bridge.h"

#include "base/mem.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/engine.h"
#include "exit_codes.h"
#include "protocol.h"
#include "worker/input.h"
#include "worker/output.h"

/* Reset: all of it is overwritten by bridge_begin and bridge_set_budget. */
static struct {
  uint64_t cpu_start_us;
  uint64_t cpu_budget_us;
  uint32_t heap_bytes;
  uint32_t stack_bytes;
  uint32_t interrupts;
} bridge;

static uint64_t bridge_clock_us(void) {
  struct sys_timespec now = {0, 0};
  if (sys_clock_gettime(SYS_CLOCK_THREAD_CPUTIME, &now) != 0) sys_exit_group(EXIT_CLOCK);
  return (uint64_t)now.seconds * 1000000u + (uint64_t)now.nanoseconds / 1000u;
}

void bridge_begin(void) {
  memset(&bridge, 0, sizeof bridge);
  bridge.cpu_start_us = bridge_clock_us();
  bridge.cpu_budget_us = UINT64_MAX;
}

void bridge_set_budget(uint64_t cpu_us, uint32_t heap_bytes, uint32_t stack_bytes) {
  bridge.cpu_budget_us = cpu_us;
  bridge.heap_bytes = heap_bytes;
  bridge.stack_bytes = stack_bytes;
}

uint64_t bridge_cpu_us(void) { return bridge_clock_us() - bridge.cpu_start_us; }

/* The report that closes Finished and Refused, as an attachment with its length. */
static void bridge_send_report(void) {
  struct {
    uint32_t length;
    struct usage_report report;
  } __attribute__((packed)) tail;
  memset(&tail, 0, sizeof tail);
  tail.length = sizeof tail.report;
  tail.report.cpu_us = bridge_cpu_us();
  tail.report.heap_peak_bytes = engine_heap_peak();
  tail.report.heap_now_bytes = engine_heap_now();
  tail.report.gc_runs = engine_gc_runs();
  tail.report.interrupts = bridge.interrupts;
  output_bytes((const uint8_t *)&tail, sizeof tail);
}

enum { REPORT_FRAME_BYTES = 4 + sizeof(struct usage_report) };

_Noreturn void bridge_finish_exhausted(enum bridge_exhausted what) {
  static const char *const reasons[] = {"cpu", "memory", "stack"};
  const uint64_t limits[] = {bridge.cpu_budget_us / 1000u, bridge.heap_bytes, bridge.stack_bytes};
  const uint64_t used[] = {bridge_cpu_us() / 1000u, engine_heap_peak(), bridge.stack_bytes};
  char header[256];
  struct text text = text_over(header, sizeof header);
  text_string(&text, "{\"status\":\"budget_exceeded\",\"reason\":\"");
  text_string(&text, reasons[what]);
  text_string(&text, "\",\"limit\":");
  text_unsigned(&text, limits[what]);
  text_string(&text, ",\"used\":");
  text_unsigned(&text, used[what]);
  text_string(&text, "}");
  output_frame(MESSAGE_FINISHED, 0, 1, (uint32_t)text.length, (uint32_t)text.length + REPORT_FRAME_BYTES);
  output_bytes((const uint8_t *)header, (uint32_t)text.length);
  bridge_send_report();
  output_flush();
  /* A script can catch whatever an interrupt throws: its time is over only when its process is. */
  if (what == BRIDGE_EXHAUSTED_CPU) sys_exit_group(0);
  engine_abandon();
}

_Noreturn void bridge_finish_failed(void) {
  if (engine_last_failure() == ENGINE_FAILURE_STACK) bridge_finish_exhausted(BRIDGE_EXHAUSTED_STACK);
  if (engine_memory_refused()) bridge_finish_exhausted(BRIDGE_EXHAUSTED_MEMORY);
  /* Nothing was lacking: the prelude itself is at fault, and a budget must not be blamed for it. */
  sys_exit_group(EXIT_SENDER);
}

int bridge_interrupt(void) {
  if (bridge.interrupts != UINT32_MAX) bridge.interrupts++;
  if (bridge_cpu_us() >= bridge.cpu_budget_us) bridge_finish_exhausted(BRIDGE_EXHAUSTED_CPU);
  /* A script that logs or calls and then computes is heard while it computes. */
  output_flush();
  return 0;
}

/* The prelude replaces every clock that script can see; the engine's own must not carry time into an image. */
double bridge_now_ms(void) { return 0; }

void bridge_rejection(uint32_t ctx, uint64_t promise, uint64_t reason, int handled) {
  (void)ctx;
  /* Without memory for the bookkeeping a warning is lost, nothing else. */
  (void)engine_call_rejection(promise, reason, handled);
}

/* TRUST: the attachments that script hands over: whole (u32 length, bytes) parts; their number, or an exit. */
static uint16_t bridge_count_parts(const uint8_t *bytes, uint32_t length) {
  uint32_t at = 0;
  uint32_t count = 0;
  while (at < length) {
    uint32_t part;
    if (length - at < sizeof part) sys_exit_group(EXIT_SENDER);
    memcpy(&part, bytes + at, sizeof part);
    at += (uint32_t)sizeof part;
    if (part > length - at) sys_exit_group(EXIT_SENDER);
    at += part;
    count++;
  }
  if (count >= UINT16_MAX) sys_exit_group(EXIT_SENDER);
  return (uint16_t)count;
}

/* The bytes of an optional second argument, as the copy that the engine makes for its caller (engine_free takes it);
 * 0 and a length of 0 when there is none. */
static uint32_t bridge_attachments(uint32_t ctx, uint32_t argc, uint32_t argv, uint32_t *length) {
  *length = 0;
  if (argc < 2) return 0;
  uint32_t value = qts_argv_get_js_value_const_pointer(argv, 1);
  enum engine_value_kind kind = engine_value_kind(value);
  if (kind == ENGINE_VALUE_UNDEFINED) return 0;
  if (kind != ENGINE_VALUE_OBJECT) sys_exit_group(EXIT_SENDER);
  uint32_t size = qts_get_array_buffer_length(ctx, value);
  uint32_t copy = qts_get_array_buffer(ctx, value);
  if (copy == 0 && engine_last_failure() == ENGINE_FAILURE_MEMORY) bridge_finish_failed();
  if (engine_span(copy, size) == NULL) sys_exit_group(EXIT_SENDER);
  *length = size;
  return copy;
}

static bool bridge_ends_activation(uint8_t type) { return type == MESSAGE_FINISHED || type == MESSAGE_REFUSED; }

/* One frame from the prelude's text and attachments. */
static void bridge_send(uint32_t ctx, uint8_t type, uint8_t flags, uint32_t argc, uint32_t argv) {
  if (argc < 1) sys_exit_group(EXIT_SENDER);
  uint32_t value = qts_argv_get_js_value_const_pointer(argv, 0);
  if (engine_value_kind(value) != ENGINE_VALUE_STRING) sys_exit_group(EXIT_SENDER);
  uint32_t string = qts_get_string(ctx, value);
  if (string == 0) bridge_finish_failed();
  uint32_t text_length = engine_cstring_length(string, UINT32_MAX - 1);
  const uint8_t *text = engine_span(string, text_length);
  if (text == NULL) sys_exit_group(EXIT_SENDER);
  uint32_t bytes_length;
  uint32_t copy = bridge_attachments(ctx, argc, argv, &bytes_length);
  const uint8_t *bytes = engine_span(copy, bytes_length);
  uint16_t count = bytes == NULL ? 0 : bridge_count_parts(bytes, bytes_length);
  bool ends = bridge_ends_activation(type);
  uint64_t rest = (uint64_t)text_length + bytes_length + (ends ? REPORT_FRAME_BYTES : 0);
  if (rest > FRAME_REST_BYTES_MAX) sys_exit_group(EXIT_SENDER);

  output_frame(type, flags, (uint16_t)(count + (ends ? 1 : 0)), text_length, (uint32_t)rest);
  output_bytes(text, text_length);
  if (bytes != NULL) output_bytes(bytes, bytes_length);
  if (ends) {
    bridge_send_report();
    output_flush();
    engine_abandon();
  }
  if (copy != 0) engine_free(copy);
  qts_free_c_string(ctx, string);
}

static uint32_t bridge_failure_name(uint32_t ctx) {
  static const char *const names[] = {"", "memory", "stack"};
  const char *name = names[engine_last_failure()];
  (void)ctx;
  return engine_new_text((const uint8_t *)name, (uint32_t)strlen(name));
}

uint32_t bridge_host_call(uint32_t ctx, uint32_t this_ptr, uint32_t argc, uint32_t argv, uint32_t host_ref_id) {
  (void)this_ptr;
  switch (host_ref_id) {
    case ENGINE_NATIVE_LAST_FAILURE:
      return bridge_failure_name(ctx);
    case ENGINE_NATIVE_CPU_US:
      return qts_new_float64(ctx, (double)bridge_cpu_us());
    default:
      break;
  }
  /* TRUST: the image made only functions with the ids of native_functions.h; any other is a subverted engine. */
  switch (host_ref_id) {
#define X(name, type, flags) case ENGINE_SENDER_ID(type, flags):
    ENGINE_SENDERS(X)
#undef X
    break;
    default:
      sys_exit_group(EXIT_SENDER);
  }
  uint8_t type = (uint8_t)(host_ref_id >> 8);
  uint8_t flags = (uint8_t)(host_ref_id & 0xff);
  /* With a further frame at hand the worker is not blocked; saying so would only be noise. */
  if (type == MESSAGE_BLOCKED && input_is_buffered()) return 0;
  if (type == MESSAGE_HOST_CALL || type == MESSAGE_CONSOLE) engine_clear_failure();
  bridge_send(ctx, type, flags, argc, argv);
  return 0;
}
