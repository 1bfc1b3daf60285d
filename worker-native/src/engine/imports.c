/*
 * What the engine's WebAssembly imports, and what ends the process on its behalf.
 *
 * Called by: the generated code only (engine_imports.h gives the minified imports these names).
 * Trust: all arguments are the guest's. What the engine must never need in this worker fails closed: no files, no
 * environment, no local time zone, no timer; an assertion, an abort or an exit of the engine is a trap.
 */
#include "base/mem.h"
#include "engine/engine_state.h"
#include "engine_imports.h"

enum { WASI_SUCCESS = 0, WASI_NOT_SUPPORTED = 52 };

/* What the C library inside the engine expects of a broken-down time, in bytes. */
enum { BROKEN_DOWN_TIME_BYTES = 44, ZONE_NAME_BYTES = 17 };

static uint8_t *span_or_trap(uint32_t ptr, uint32_t bytes) {
  uint8_t *span = engine_span(ptr, bytes);
  if (span == NULL) engine_trap();
  return span;
}

wasm_rt_memory_t *w2c_a_a(struct w2c_a *host) {
  (void)host;
  return &engine_memory;
}

/* ---- to the bridge --------------------------------------------------------------------------------------------- */

uint32_t engine_import_call_function(struct w2c_a *host, uint32_t ctx, uint32_t this_ptr, uint32_t argc, uint32_t argv,
                                     uint32_t host_ref_id) {
  (void)host;
  return bridge_host_call(ctx, this_ptr, argc, argv, host_ref_id);
}

uint32_t engine_import_should_interrupt(struct w2c_a *host, uint32_t runtime) {
  (void)host;
  (void)runtime;
  return bridge_interrupt() != 0 ? 1 : 0;
}

double engine_import_date_now(struct w2c_a *host) {
  (void)host;
  return bridge_now_ms();
}

void engine_rejection_tracker(void *instance, uint32_t ctx, uint64_t promise, uint64_t reason, uint32_t handled,
                              uint32_t opaque) {
  (void)instance;
  (void)opaque;
  bridge_rejection(ctx, promise, reason, handled != 0);
}

/* Native functions live as long as the image; there is nothing to release. */
void engine_import_free_host_ref(struct w2c_a *host, uint32_t runtime, uint32_t host_ref_id) {
  (void)host;
  (void)runtime;
  (void)host_ref_id;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

uint32_t engine_import_resize_heap(struct w2c_a *host, uint32_t bytes) {
  (void)host;
  return engine_grow(bytes) ? 1 : 0;
}

/* Called from the places in the generated code that raise the engine's own errors for lack of something. */
void engine_record_failure(int failure) {
  engine_state.failure = failure == ENGINE_FAILURE_STACK ? ENGINE_FAILURE_STACK : ENGINE_FAILURE_MEMORY;
}

/* ---- traps ----------------------------------------------------------------------------------------------------- */

void engine_import_assert_fail(struct w2c_a *host, uint32_t condition, uint32_t file, uint32_t line, uint32_t function) {
  (void)host;
  (void)condition;
  (void)file;
  (void)line;
  (void)function;
  engine_trap();
}

void engine_import_abort(struct w2c_a *host) {
  (void)host;
  engine_trap();
}

void engine_import_proc_exit(struct w2c_a *host, uint32_t code) {
  (void)host;
  (void)code;
  engine_trap();
}

/* The first half of the engine's exit(). */
void engine_import_keepalive_clear(struct w2c_a *host) { (void)host; }

/* ---- what there is not ----------------------------------------------------------------------------------------- */

uint32_t engine_import_fd_write(struct w2c_a *host, uint32_t fd, uint32_t vectors, uint32_t count, uint32_t written) {
  (void)host;
  (void)fd;
  (void)vectors;
  (void)count;
  (void)written;
  return WASI_NOT_SUPPORTED;
}

uint32_t engine_import_fd_seek(struct w2c_a *host, uint32_t fd, uint64_t offset, uint32_t whence, uint32_t position) {
  (void)host;
  (void)fd;
  (void)offset;
  (void)whence;
  (void)position;
  return WASI_NOT_SUPPORTED;
}

uint32_t engine_import_fd_close(struct w2c_a *host, uint32_t fd) {
  (void)host;
  (void)fd;
  return WASI_NOT_SUPPORTED;
}

/* An environment without a variable: its two lists are empty. */
uint32_t engine_import_environ_sizes_get(struct w2c_a *host, uint32_t count, uint32_t bytes) {
  (void)host;
  memset(span_or_trap(count, 4), 0, 4);
  memset(span_or_trap(bytes, 4), 0, 4);
  return WASI_SUCCESS;
}

uint32_t engine_import_environ_get(struct w2c_a *host, uint32_t list, uint32_t buffer) {
  (void)host;
  (void)list;
  (void)buffer;
  return WASI_SUCCESS;
}

/* No module loader: a null pointer makes the engine throw. */
uint32_t engine_import_load_module(struct w2c_a *host, uint32_t runtime, uint32_t ctx, uint32_t name) {
  (void)host;
  (void)runtime;
  (void)ctx;
  (void)name;
  return 0;
}

uint32_t engine_import_normalize_module(struct w2c_a *host, uint32_t runtime, uint32_t ctx, uint32_t base,
                                        uint32_t name) {
  (void)host;
  (void)runtime;
  (void)ctx;
  (void)base;
  (void)name;
  return 0;
}

uint32_t engine_import_setitimer(struct w2c_a *host, uint32_t which, double milliseconds) {
  (void)host;
  (void)which;
  (void)milliseconds;
  return (uint32_t)-1;
}

/* Local time is UTC. Of the result the engine reads the offset from UTC only, which is 0 like everything else here. */
void engine_import_localtime(struct w2c_a *host, uint64_t seconds, uint32_t result) {
  (void)host;
  (void)seconds;
  memset(span_or_trap(result, BROKEN_DOWN_TIME_BYTES), 0, BROKEN_DOWN_TIME_BYTES);
}

void engine_import_tzset(struct w2c_a *host, uint32_t offset, uint32_t daylight, uint32_t standard_name,
                         uint32_t daylight_name) {
  (void)host;
  memset(span_or_trap(offset, 4), 0, 4);
  memset(span_or_trap(daylight, 4), 0, 4);
  memcpy(span_or_trap(standard_name, ZONE_NAME_BYTES), "UTC", 4);
  memcpy(span_or_trap(daylight_name, ZONE_NAME_BYTES), "UTC", 4);
}
