/*
 * Build tool: runs the engine and the prelude once and writes the pristine image that every worker starts from.
 *
 * Called by: scripts/native/engine.mjs as `make_image PRELUDE SAMPLE FOLDER`. Writes FOLDER/image.bin, engine_image.c (the
 * constants of engine.h and engine_state.h) and engine_image.S (the section that holds the image).
 *
 * First it looks at an instance that is thrown away: whether QuickJS's structures are where our C believes them to be,
 * whether values have the tags, whether the hooks (allocator, failures, promise rejections) do what they are for. Any doubt
 * ends the build. Then it makes the image in a fresh instance. Kept true: the same module and the same prelude give
 * the same bytes (no clock, no random number, no address of this process gets in).
 */
#define _XOPEN_SOURCE 700

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "engine/engine_state.h"
#include "engine/image/placement.h"
#include "engine_constants.h"

struct engine_image engine_image;
struct engine_layout engine_layout;

/* The functions that the prelude's completion value holds, and where their values go. */
#define IMAGE_FUNCTIONS(X) X(activate) X(start) X(refuse) X(deliver) X(idle) X(rejection)

/* The engine's memory while the image is made; most of it is placement.c's scratch memory. */
#define MAKING_BYTES (UINT64_C(1) << 30)

/* How often the image is made at most; what is written by then and does not lie together stays where it is. */
#define ROUNDS_MAX 8

/* Free heap at the image's end: small scripts run without growing memory. Pages of it that are not used cost nothing. */
#define SPARE_BYTES (UINT32_C(1) << 20)

/* How the emscripten link of this module sets its shadow stack up, and how much of it a prelude may have used. */
#define SHADOW_STACK_BYTES (UINT32_C(5) << 20)
#define SHADOW_STACK_USED_BYTES_MAX (UINT32_C(3) << 20)

static uint32_t allocator_table_address; /* in the module's initial data */
static uint32_t break_address;           /* of the word that holds the end of the heap */
static bool sampling;                    /* the image is finished, an activation is being tried on it */
static uint32_t heap_used_to;             /* behind it lies the free heap */
static uint32_t rejections[2];           /* seen by bridge_rejection, by `handled` */

__attribute__((format(printf, 1, 2))) static _Noreturn void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("make_image: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

__attribute__((format(printf, 2, 3))) static void require(bool holds, const char *format, ...) {
  if (holds) return;
  va_list arguments;
  va_start(arguments, format);
  fputs("make_image: the engine is not as expected: ", stderr);
  vfprintf(stderr, format, arguments);
  fputs(" (its version changed?)\n", stderr);
  va_end(arguments);
  exit(1);
}

/* ---- the bridge of this tool ----------------------------------------------------------------------------------- */

uint32_t bridge_host_call(uint32_t ctx, uint32_t this_ptr, uint32_t argc, uint32_t argv, uint32_t host_ref_id) {
  (void)ctx;
  (void)this_ptr;
  (void)argc;
  (void)argv;
  if (sampling) {
    if (host_ref_id == ENGINE_SENDER_ID(6, 0)) engine_abandon();
    return 0;
  }
  fail("the prelude called native function 0x%x while the image is made", host_ref_id);
}

int bridge_interrupt(void) { return 0; }

void bridge_rejection(uint32_t ctx, uint64_t promise, uint64_t reason, int handled) {
  (void)ctx;
  (void)promise;
  (void)reason;
  rejections[handled != 0]++;
}

double bridge_now_ms(void) { return 0; }

/* ---- running script -------------------------------------------------------------------------------------------- */

static uint32_t new_bytes(const void *bytes, size_t length) {
  const uint32_t ptr = engine_malloc((uint32_t)length + 1);
  uint8_t *span = engine_span(ptr, (uint32_t)length + 1);
  if (span == NULL) fail("no memory in the engine");
  memcpy(span, bytes, length);
  span[length] = 0;
  return ptr;
}

static uint32_t new_string(const char *text) {
  const uint32_t ptr = new_bytes(text, strlen(text));
  const uint32_t value = qts_new_string(engine_image.context, ptr);
  engine_free(ptr);
  return value;
}

static void free_value(uint32_t value) { qts_free_value_pointer(engine_image.context, value); }

static void print_value(uint32_t value) {
  const uint32_t text = qts_get_string(engine_image.context, value);
  const uint32_t length = engine_cstring_length(text, 1 << 20);
  const uint8_t *span = length != UINT32_MAX ? engine_span(text, length) : NULL;
  if (span != NULL) fprintf(stderr, "%.*s\n", (int)length, (const char *)span);
}

static uint32_t get_property(uint32_t object, const char *name) {
  const uint32_t key = new_string(name);
  const uint32_t value = qts_get_prop(engine_image.context, object, key);
  free_value(key);
  return value;
}

static uint32_t evaluate(const char *name, const char *text, size_t length) {
  const uint32_t source = new_bytes(text, length);
  const uint32_t file = new_bytes(name, strlen(name));
  const uint32_t result = qts_eval(engine_image.context, source, (uint32_t)length, file, 0, 0);
  engine_free(file);
  engine_free(source);
  return result;
}

/* Evaluates a script that must succeed. */
static uint32_t evaluate_well(const char *name, const char *text, size_t length) {
  const uint32_t result = evaluate(name, text, length);
  if (engine_value_kind(result) == ENGINE_VALUE_EXCEPTION) {
    const uint32_t error = qts_resolve_exception(engine_image.context, result);
    fprintf(stderr, "make_image: %s threw: ", name);
    print_value(error);
    print_value(get_property(error, "stack"));
    exit(1);
  }
  return result;
}

static uint32_t evaluate_text(const char *text) { return evaluate_well("probe.js", text, strlen(text)); }

static enum engine_value_kind kind_of(const char *text) {
  const uint32_t value = evaluate_text(text);
  const enum engine_value_kind kind = engine_value_kind(value);
  free_value(value);
  return kind;
}

static void run_jobs(void) {
  while (engine_run_job() != 0) {
  }
}

/* The next object that is made finds the threshold passed and collects; so does this one. */
static void collect(void) {
  engine_write32(engine_image.runtime, RUNTIME_GC_THRESHOLD, 0);
  free_value(qts_new_object(engine_image.context));
  require(engine_read32(engine_image.runtime, RUNTIME_GC_THRESHOLD) != 0, "no collection at a threshold of 0");
  engine_write32(engine_image.runtime, RUNTIME_GC_THRESHOLD, UINT32_MAX);
  engine_state.collecting = false;
}

/* ---- a fresh instance ------------------------------------------------------------------------------------------ */

/* The word in the initial data that holds the end of the heap: before anything is allocated, the end of the stack. */
static void find_break(void) {
  uint32_t found = 0;
  for (uint32_t address = 4; address < ENGINE_DATA_END; address += 4) {
    if (engine_read32(address, 0) != ENGINE_SHADOW_STACK_TOP) continue;
    break_address = address;
    found++;
  }
  require(found == 1, "the end of the heap stands %u times in the data", found);
}

static void instantiate(void) {
  if (engine_memory.size > 0) {
    /* Unlike DONTNEED alone, which would do as well, this leaves the same memory as the first time. */
    sys_madvise(engine_memory.data, engine_memory.size, SYS_MADV_DONTNEED);
    sys_mprotect(engine_memory.data, engine_memory.size, SYS_PROT_NONE);
    engine_memory.size = 0;
  }
  engine_state = (struct engine_state){.heap_bytes_max = MAKING_BYTES, .collect_at = UINT64_MAX};
  if (!engine_grow(ENGINE_SHADOW_STACK_TOP)) fail("no memory");
  wasm2c_engine_instantiate(&engine_instance, NULL);
  require(engine_instance.w2c_g0 == ENGINE_SHADOW_STACK_TOP, "the stack pointer is not in its place");
  find_break();
  engine_constructors();
}

static uint32_t malloc_state(uint32_t member) {
  return engine_read32(engine_image.runtime, RUNTIME_MALLOC_STATE + member);
}

/* Rows of the allocator in a runtime, in the order malloc, free, realloc, usable size. */
static const int32_t host_rows[] = {ENGINE_ROW_MALLOC, ENGINE_ROW_FREE, ENGINE_ROW_REALLOC, ENGINE_ROW_USABLE_SIZE};

/* Where the four words that JS_NewRuntime copies into a runtime stand in the initial data. */
static void find_allocator_table(void) {
  uint32_t rows[4];
  for (uint32_t at = 0; at < 4; at++) {
    rows[at] = engine_read32(engine_image.runtime, RUNTIME_MALLOC + 4 * at);
    require(rows[at] > 0 && rows[at] < ENGINE_ROW_MALLOC, "allocator function %u is table row %u", at, rows[at]);
    require(engine_table[rows[at]].func_type == engine_table[host_rows[at]].func_type,
            "allocator function %u has another type", at);
  }
  uint32_t found = 0;
  for (uint32_t address = 4; address + sizeof rows <= ENGINE_DATA_END; address += 4) {
    if (memcmp(engine_memory.data + address, rows, sizeof rows) != 0) continue;
    allocator_table_address = address;
    found++;
  }
  require(found == 1, "the allocator's functions stand %u times in the data", found);
  engine_layout.def_malloc = rows[0];
  engine_layout.def_free = rows[1];
  engine_layout.def_realloc = rows[2];
}

/* A runtime whose allocator is ours from the first block on, and a context. */
static void new_runtime(void) {
  for (uint32_t at = 0; at < 4; at++) {
    engine_write32(allocator_table_address, 4 * at, (uint32_t)host_rows[at]);
  }
  engine_image.runtime = qts_new_runtime();
  if (engine_image.runtime == 0) fail("no memory for a runtime");
  /* The runtime's own block was allocated before our function was known to it, and counted without its bytes. */
  engine_write32(engine_image.runtime, RUNTIME_MALLOC_STATE + MALLOC_STATE_SIZE,
                 malloc_state(MALLOC_STATE_SIZE) + placement_true_block_bytes(engine_image.runtime));
  engine_write32(engine_image.runtime, RUNTIME_GC_THRESHOLD, UINT32_MAX);
  engine_write32(engine_image.runtime, RUNTIME_REJECTION_TRACKER, ENGINE_ROW_REJECTION);
  qts_runtime_enable_interrupt_handler(engine_image.runtime);
  engine_image.context = qts_new_context(engine_image.runtime, 0);
  if (engine_image.context == 0) fail("no memory for a context");
}

/* ---- checks on an instance that is thrown away ----------------------------------------------------------------- */

/* QuickJS's own runtime, untouched: is everything where engine_state.h says? */
static void check_layout(void) {
  instantiate();
  const uint32_t runtime = engine_image.runtime = qts_new_runtime();
  require(engine_read32(runtime, RUNTIME_GC_THRESHOLD) == 262144, "no collector threshold at offset 108");
  require(malloc_state(MALLOC_STATE_COUNT) > 0 && malloc_state(8) == UINT32_MAX, "no malloc state at offset 16");
  require(engine_read32(runtime, RUNTIME_STACK_SIZE) == 1048576, "no stack size at offset 120");
  qts_runtime_set_max_stack_size(runtime, 123456);
  const uint32_t stack_top = engine_read32(runtime, RUNTIME_STACK_SIZE + 4);
  const uint32_t stack_limit = engine_read32(runtime, RUNTIME_STACK_SIZE + 8);
  require(engine_read32(runtime, RUNTIME_STACK_SIZE) == 123456 && stack_top - stack_limit == 123456,
          "the stack limit is not computed from the stack size");
  require(stack_top <= ENGINE_SHADOW_STACK_TOP && ENGINE_SHADOW_STACK_TOP - stack_top < 4096,
          "the stack is not measured on the shadow stack");
  require(ENGINE_SHADOW_STACK_TOP - SHADOW_STACK_BYTES >= ENGINE_DATA_END &&
              ENGINE_SHADOW_STACK_TOP - SHADOW_STACK_BYTES < ENGINE_DATA_END + ENGINE_PAGE_BYTES,
          "the shadow stack is not 5 MiB behind the data");
  require(engine_read32(runtime, RUNTIME_INTERRUPT_HANDLER) == 0, "an interrupt handler at offset 152");
  qts_runtime_enable_interrupt_handler(runtime);
  const uint32_t handler = engine_read32(runtime, RUNTIME_INTERRUPT_HANDLER);
  require(handler > 0 && handler < ENGINE_ROW_MALLOC, "no interrupt handler at offset 152");
  /* Between the interrupt handler and the (empty) list of jobs lie the rejection tracker and its argument. */
  require(engine_read32(runtime, RUNTIME_REJECTION_TRACKER) == 0 &&
              engine_read32(runtime, RUNTIME_REJECTION_TRACKER + 4) == 0 &&
              engine_read32(runtime, RUNTIME_REJECTION_TRACKER + 8) == runtime + RUNTIME_REJECTION_TRACKER + 8 &&
              engine_read32(runtime, RUNTIME_REJECTION_TRACKER + 12) == runtime + RUNTIME_REJECTION_TRACKER + 8,
          "no rejection tracker at offset 160");
  find_allocator_table();
}

static void check_kinds(void) {
  require(kind_of("undefined") == ENGINE_VALUE_UNDEFINED && kind_of("null") == ENGINE_VALUE_NULL &&
              kind_of("true") == ENGINE_VALUE_BOOL && kind_of("7") == ENGINE_VALUE_NUMBER &&
              kind_of("-1.5") == ENGINE_VALUE_NUMBER && kind_of("NaN") == ENGINE_VALUE_NUMBER &&
              kind_of("-Infinity") == ENGINE_VALUE_NUMBER && kind_of("'text'") == ENGINE_VALUE_STRING &&
              kind_of("'x'.repeat(9000) + 'y'.repeat(9000)") == ENGINE_VALUE_STRING &&
              kind_of("({})") == ENGINE_VALUE_OBJECT && kind_of("(() => 0)") == ENGINE_VALUE_OBJECT &&
              kind_of("Symbol()") == ENGINE_VALUE_OTHER && kind_of("2n ** 99n") == ENGINE_VALUE_OTHER &&
              kind_of("1n") == ENGINE_VALUE_OTHER,
          "values have other tags");
  const uint32_t thrown = evaluate("probe.js", "throw 1", 7);
  require(engine_value_kind(thrown) == ENGINE_VALUE_EXCEPTION, "an exception has another tag");
  free_value(qts_resolve_exception(engine_image.context, thrown));
}

static void check_allocator(void) {
  collect();
  const uint32_t before = malloc_state(MALLOC_STATE_SIZE);
  const uint32_t buffer = evaluate_text("new ArrayBuffer(1000000)");
  const uint32_t with = malloc_state(MALLOC_STATE_SIZE);
  free_value(buffer);
  const uint32_t after = malloc_state(MALLOC_STATE_SIZE);
  require(with - before >= 1000000 && with - before < 1010000, "a buffer of 1000000 bytes counts as %u",
          with - before);
  require(after - before < 10000, "%u bytes stay counted after a buffer was freed", after - before);
  /* Blocks that change their size, and blocks that are freed: what is left must be what was there before. */
  static const char churn[] =
      "(() => { const a = []; for (let i = 0; i < 20000; i++) a.push('s' + i); a.length = 10; a.push(a.join()) })()";
  free_value(evaluate_text(churn));
  collect();
  const uint32_t settled = malloc_state(MALLOC_STATE_SIZE);
  free_value(evaluate_text(churn));
  collect();
  require(malloc_state(MALLOC_STATE_SIZE) == settled, "%d bytes stay counted after a script",
          (int32_t)(malloc_state(MALLOC_STATE_SIZE) - settled));
}

static void check_failures(void) {
  static const char *const stack[] = {"(function f() { f() })()", "JSON.parse('['.repeat(1e5))",
                                      "eval('('.repeat(1e5))", "new RegExp('(?:'.repeat(1e5))"};
  for (size_t at = 0; at < sizeof stack / sizeof stack[0]; at++) {
    engine_clear_failure();
    const uint32_t thrown = evaluate("probe.js", stack[at], strlen(stack[at]));
    require(engine_value_kind(thrown) == ENGINE_VALUE_EXCEPTION && engine_last_failure() == ENGINE_FAILURE_STACK,
            "no stack failure is recorded for %s", stack[at]);
    free_value(qts_resolve_exception(engine_image.context, thrown));
  }
  static const char memory[] = "new ArrayBuffer(2 ** 30 + 2 ** 29)";
  engine_clear_failure();
  const uint32_t thrown = evaluate("probe.js", memory, strlen(memory));
  require(engine_value_kind(thrown) == ENGINE_VALUE_EXCEPTION && engine_last_failure() == ENGINE_FAILURE_MEMORY,
          "no memory failure is recorded");
  free_value(qts_resolve_exception(engine_image.context, thrown));
  engine_clear_failure();
}

static void check_rejections(void) {
  memset(rejections, 0, sizeof rejections);
  const uint32_t promise = evaluate_text("globalThis.p = Promise.reject(1)");
  run_jobs();
  require(rejections[0] == 1 && rejections[1] == 0, "no rejection is reported");
  free_value(promise);
  free_value(evaluate_text("p.catch(() => 0)"));
  run_jobs();
  require(rejections[0] == 1 && rejections[1] == 1, "no late handler is reported");
}

static void check_engine(void *unused) {
  (void)unused;
  check_layout();
  instantiate();
  new_runtime();
  check_kinds();
  check_allocator();
  check_rejections();
  check_failures();
}

/* ---- the image ------------------------------------------------------------------------------------------------- */

static void set_property(uint32_t object, const char *name, uint32_t value) {
  const uint32_t key = new_string(name);
  qts_set_prop(engine_image.context, object, key, value);
  free_value(key);
}

static void set_function(uint32_t object, const char *name, uint32_t id) {
  const uint32_t c_name = new_bytes(name, strlen(name));
  const uint32_t value = qts_new_function(engine_image.context, c_name, 0, 0, id);
  set_property(object, name, value);
  free_value(value);
  engine_free(c_name);
}

/* The temporary global with everything in native_functions.h. */
static void give_natives(uint32_t global) {
  const uint32_t natives = qts_new_object(engine_image.context);
  const uint32_t senders = qts_new_object(engine_image.context);
#define X(name, type, flags) set_function(senders, #name, ENGINE_SENDER_ID(type, flags));
  ENGINE_SENDERS(X)
#undef X
#define X(name, id) set_function(natives, #name, id);
  ENGINE_NATIVES(X)
#undef X
  set_property(natives, "send", senders);
  set_property(global, "__flowcell_native", natives);
  free_value(senders);
  free_value(natives);
}

struct script {
  const char *text;
  size_t length;
};

/* Leaves free heap behind, without what the making left in it. */
static void leave_spare_heap(void) {
  const uint32_t spare = engine_malloc(SPARE_BYTES);
  uint8_t *span = engine_span(spare, SPARE_BYTES);
  if (span == NULL) fail("no memory in the engine");
  memset(span, 0, SPARE_BYTES);
  engine_free(spare);
  heap_used_to = spare & ~(uint32_t)(ENGINE_STEP_BYTES - 1);
}

/* Everything between a runtime that does not exist and one that is ready, the same way each time. */
static void prepare(const struct script *prelude) {
  new_runtime();
  const uint32_t global = qts_get_global_object(engine_image.context);
  give_natives(global);
  memset(rejections, 0, sizeof rejections);
  const uint32_t exports = evaluate_well("prelude.js", prelude->text, prelude->length);
  run_jobs();
  if (engine_value_kind(exports) != ENGINE_VALUE_OBJECT) fail("the prelude's completion value is no object");
  if (rejections[0] != rejections[1]) fail("the prelude left a promise rejection unhandled");
#define X(name)                                                                                  \
  engine_image.fn_##name = get_property(exports, #name);                                         \
  if (engine_value_kind(engine_image.fn_##name) != ENGINE_VALUE_OBJECT) {                        \
    fail("the prelude's completion value has no function %s", #name);                            \
  }
  IMAGE_FUNCTIONS(X)
#undef X
  free_value(exports);
  const uint32_t left = get_property(global, "__flowcell_native");
  if (engine_value_kind(left) != ENGINE_VALUE_UNDEFINED) fail("the prelude did not delete __flowcell_native");
  free_value(left);
  free_value(global);
  qts_runtime_set_max_stack_size(engine_image.runtime, ENGINE_STACK_BYTES_MAX);
  collect();
  run_jobs();
  if (qts_is_job_pending(engine_image.runtime) != 0) fail("a job of the prelude is left");
}

static void record_image(void *prelude) {
  instantiate();
  placement_record();
  prepare(prelude);
  placement_stop();
}

static void make_image(void *prelude) {
  sampling = false;
  instantiate();
  engine_image.scratch = new_bytes((uint8_t[ENGINE_SCRATCH_BYTES]){0}, ENGINE_SCRATCH_BYTES);
  engine_image.script_name = new_bytes("script.js", strlen("script.js"));
  placement_place();
  prepare(prelude);
  const uint32_t survivors = placement_stop();
  require(malloc_state(MALLOC_STATE_COUNT) == survivors + 1, "it counts %u blocks, %u survived",
          malloc_state(MALLOC_STATE_COUNT), survivors);
  /* 8 bytes of overhead each, and the runtime's own block, which is counted with them. */
  engine_write32(engine_image.runtime, RUNTIME_MALLOC_STATE + MALLOC_STATE_SIZE,
                 placement_survivor_bytes() + 8 * (survivors + 1) +
                     placement_true_block_bytes(engine_image.runtime));
  leave_spare_heap();
  require(engine_instance.w2c_g0 == ENGINE_SHADOW_STACK_TOP, "the stack pointer did not come back");
  engine_layout.stack_pointer = engine_instance.w2c_g0;
}

static bool is_zero(const uint8_t *bytes, size_t length) {
  for (size_t at = 0; at < length; at++) {
    if (bytes[at] != 0) return false;
  }
  return true;
}

/* What lies below the stack pointer is dead: no byte of it belongs into the image. */
static void clear_stack(void) {
  uint8_t *const top = engine_memory.data + ENGINE_SHADOW_STACK_TOP;
  require(is_zero(top - SHADOW_STACK_BYTES, SHADOW_STACK_BYTES - SHADOW_STACK_USED_BYTES_MAX),
          "the prelude used more than 3 MiB of stack");
  memset(top - SHADOW_STACK_USED_BYTES_MAX, 0, SHADOW_STACK_USED_BYTES_MAX);
}

/* The memory as it is now is the image; a copy of it. */
static uint8_t *take_image(void) {
  clear_stack();
  const uint32_t heap_end = engine_read32(break_address, 0);
  engine_image.top = (heap_end + ENGINE_PAGE_BYTES - 1) & ~(uint32_t)(ENGINE_PAGE_BYTES - 1);
  require(heap_end > ENGINE_SHADOW_STACK_TOP && engine_image.top <= engine_memory.size, "the heap ends at %u",
          heap_end);
  uint8_t *const image = malloc(engine_image.top);
  if (image == NULL) fail("no memory");
  memcpy(image, engine_memory.data, engine_image.top);
  return image;
}

/* ---- pages that every activation writes ------------------------------------------------------------------------- */

/*
 * An activation as the worker drives it. What matters is which pages it writes; how far it gets with this prelude does
 * not, so errors are not looked at.
 */
static void try_activation(void *argument) {
  static const char activate[] =
      "{\"activation\":1,\"clock\":0,\"seed\":\"0000000000000000000000000000000000000000000000000000000000000000\","
      "\"names\":[\"sample.call\"],\"limits\":{\"hostCalls\":100,\"inFlight\":16,\"outputBytes\":65536,"
      "\"resultBytes\":65536,\"valueBytes\":65536,\"bodyBytes\":65536},\"codeGeneration\":true}\n{\"name\":\"value\"}";
  static const char deliver[] =
      "{\"activation\":1,\"kind\":\"call\",\"position\":0,\"ok\":true,\"clock\":1}\n{\"rows\":[{\"id\":1}]}";
  const struct script *script = argument;
  sampling = true;
  qts_runtime_set_max_stack_size(engine_image.runtime, ENGINE_STACK_BYTES_MAX);
  const uint32_t first[] = {new_string(activate), qts_get_undefined(), qts_get_false()};
  free_value(engine_call(engine_image.fn_activate, 3, first));
  free_value(first[0]);
  const uint32_t source = new_bytes(script->text, script->length);
  const uint32_t fn = qts_eval(engine_image.context, source, (uint32_t)script->length, engine_image.script_name, 0, 0);
  engine_free(source);
  require(engine_value_kind(fn) == ENGINE_VALUE_OBJECT, "the sample does not parse");
  free_value(engine_call(engine_image.fn_start, 1, &fn));
  run_jobs();
  free_value(engine_call(engine_image.fn_idle, 0, NULL));
  const uint32_t second[] = {new_string(deliver), qts_get_undefined(), qts_get_false()};
  free_value(engine_call(engine_image.fn_deliver, 3, second));
  free_value(second[0]);
  run_jobs();
  free_value(engine_call(engine_image.fn_idle, 0, NULL));
}

/* ---- which pages and blocks it writes ---------------------------------------------------------------------------- */

enum { STEPS_MAX = 64 << 8 }; /* 64 MiB of steps of 4 KiB */

static bool written_steps[STEPS_MAX];
static uint32_t newly_marked;

static uint8_t *step_address(uint32_t step) { return engine_memory.data + (uint64_t)step * ENGINE_STEP_BYTES; }

static void protect_image(int prot) {
  if (sys_mprotect(engine_memory.data, engine_image.top, prot) != 0) fail("cannot protect the image");
}

/* Every so often the whole image is protected anew: a write shows one block of a step, and there are many. */
static void protect_again(void) {
  static uint32_t ticks;
  if (ticks++ % 16 == 0) protect_image(SYS_PROT_READ);
}

/* The image is write-protected; the next write to each step ends up here. */
static void on_write(int signal, siginfo_t *info, void *context) {
  (void)context;
  const uint64_t address = (uint64_t)((uint8_t *)info->si_addr - engine_memory.data);
  if (address >= engine_image.top) {
    /* A fault like any other: let it happen again without this handler. */
    (void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    return;
  }
  const uint32_t step = (uint32_t)(address / ENGINE_STEP_BYTES);
  written_steps[step] = true;
  if (placement_mark((uint32_t)address)) newly_marked++;
  (void)sys_mprotect(step_address(step), ENGINE_STEP_BYTES, SYS_PROT_READ | SYS_PROT_WRITE);
}

/* Tries the sample and finds what it writes. */
static void trace_activation(struct script *sample) {
  if (engine_image.top / ENGINE_STEP_BYTES > STEPS_MAX) fail("the image is larger than 64 MiB");
  memset(written_steps, 0, sizeof written_steps);
  newly_marked = 0;
  struct sigaction before;
  const struct sigaction handler = {.sa_sigaction = on_write, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  if (sigaction(SIGSEGV, &handler, &before) != 0) fail("no signal handler");
  protect_image(SYS_PROT_READ);
  placement_tick = protect_again;
  engine_run_on_stack(try_activation, sample);
  placement_tick = NULL;
  protect_image(SYS_PROT_READ | SYS_PROT_WRITE);
  if (sigaction(SIGSEGV, &before, NULL) != 0) fail("no signal handler");
}

/* ---- the parts of the image ------------------------------------------------------------------------------------- */

static struct engine_part parts[64];
static uint32_t part_count;

/* Of the free heap at the end, what is kept in place: more than a small script needs. */
enum { SPARE_KEPT_BYTES = 256 << 10 };

/* What the step is, by its bytes: stored in whole pages of linear memory, since that is how it is mapped. */
static enum engine_part_kind kind_of_step(const uint8_t *image, uint32_t step) {
  const uint32_t page = step & ~(uint32_t)(ENGINE_PAGE_BYTES - 1);
  const bool stored = !is_zero(image + page, ENGINE_PAGE_BYTES);
  const bool written = written_steps[step / ENGINE_STEP_BYTES];
  if (stored) return written ? ENGINE_PART_COPY : ENGINE_PART_COMPARE;
  return written ? ENGINE_PART_CLEAR : ENGINE_PART_DROP;
}

static void add_part(uint32_t from, uint32_t to, enum engine_part_kind kind) {
  if (part_count > 0 && parts[part_count - 1].kind == kind) {
    parts[part_count - 1].to = to;
    return;
  }
  if (part_count == sizeof parts / sizeof parts[0]) fail("the image has too many parts");
  parts[part_count++] = (struct engine_part){from, to, kind};
}

static void find_parts(const uint8_t *image) {
  for (uint32_t step = 0; step < engine_image.top; step += ENGINE_STEP_BYTES) {
    enum engine_part_kind kind = kind_of_step(image, step);
    const bool near = step >= heap_used_to && step < heap_used_to + SPARE_KEPT_BYTES;
    if (kind == ENGINE_PART_DROP && near) kind = ENGINE_PART_CLEAR;
    add_part(step, step + ENGINE_STEP_BYTES, kind);
  }
}

static uint32_t bytes_of(enum engine_part_kind kind) {
  uint32_t bytes = 0;
  for (uint32_t at = 0; at < part_count; at++) {
    if (parts[at].kind == kind) bytes += parts[at].to - parts[at].from;
  }
  return bytes;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static FILE *create(const char *folder, const char *name) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) fail("the folder's name is too long");
  FILE *file = fopen(path, "wb");
  if (file == NULL) fail("cannot write %s", path);
  return file;
}

static void close_file(FILE *file) {
  if (ferror(file) || fclose(file) != 0) fail("cannot write the image");
}

static void write_bytes(const char *folder, const uint8_t *image) {
  FILE *file = create(folder, "image.bin");
  for (uint32_t at = 0; at < part_count; at++) {
    const struct engine_part part = parts[at];
    if (part.kind == ENGINE_PART_COMPARE || part.kind == ENGINE_PART_COPY) {
      fwrite(image + part.from, 1, part.to - part.from, file);
    }
  }
  close_file(file);
}

static void write_constants(const char *folder) {
  FILE *file = create(folder, "engine_image.c");
  fputs("/* Written by make_image. Do not edit. */\n#include \"engine/engine_state.h\"\n\n", file);
  fputs("const struct engine_image engine_image = {\n", file);
  fprintf(file, "    .runtime = %u,\n    .context = %u,\n", engine_image.runtime, engine_image.context);
#define X(name) fprintf(file, "    .fn_" #name " = %u,\n", engine_image.fn_##name);
  IMAGE_FUNCTIONS(X)
#undef X
  fprintf(file, "    .scratch = %u,\n    .script_name = %u,\n    .top = %u,\n};\n\n", engine_image.scratch,
          engine_image.script_name, engine_image.top);
  fprintf(file,
          "const struct engine_layout engine_layout = {\n    .stack_pointer = %u,\n    .def_malloc = %u,\n"
          "    .def_free = %u,\n    .def_realloc = %u,\n};\n\n",
          engine_layout.stack_pointer, engine_layout.def_malloc, engine_layout.def_free, engine_layout.def_realloc);
  static const char *const kinds[] = {"ENGINE_PART_DROP", "ENGINE_PART_CLEAR", "ENGINE_PART_COMPARE", "ENGINE_PART_COPY"};
  fputs("const struct engine_part engine_parts[] = {\n", file);
  for (uint32_t at = 0; at < part_count; at++) {
    fprintf(file, "    {%u, %u, %s},\n", parts[at].from, parts[at].to, kinds[parts[at].kind]);
  }
  fprintf(file, "};\nconst uint32_t engine_part_count = %u;\n", part_count);
  close_file(file);
}

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail("cannot read %s", path);
  size_t size = 0, room = 1 << 20;
  char *text = malloc(room);
  while (text != NULL) {
    const size_t got = fread(text + size, 1, room - size, file);
    size += got;
    if (got == 0) break;
    if (size == room) text = realloc(text, room *= 2);
  }
  if (text == NULL || ferror(file)) fail("cannot read %s", path);
  fclose(file);
  if (memchr(text, 0, size) != NULL) fail("%s holds a NUL", path);
  *length = size;
  return text;
}

int main(int argc, char **argv) {
  if (argc != 4) fail("usage: make_image PRELUDE SAMPLE FOLDER");
  struct script prelude, sample;
  prelude.text = read_file(argv[1], &prelude.length);
  sample.text = read_file(argv[2], &sample.length);
  if (engine_reserve() < 0) fail("no address space");
  engine_run_on_stack(check_engine, NULL);

  engine_run_on_stack(record_image, &prelude);
  uint8_t *image = NULL;
  uint32_t allocated = 0;
  /* Each time round, the blocks that were seen to be written lie together. */
  for (int round = 0; round < ROUNDS_MAX && (round == 0 || newly_marked > 0); round++) {
    free(image);
    engine_run_on_stack(make_image, &prelude);
    image = take_image();
    allocated = malloc_state(MALLOC_STATE_SIZE);
    trace_activation(&sample);
  }
  find_parts(image);
  write_bytes(argv[3], image);
  write_constants(argv[3]);
  printf("%u KiB of linear memory, %u KiB stored (%u KiB rewritten at a reset), %u KiB allocated\n",
         engine_image.top >> 10, (bytes_of(ENGINE_PART_COMPARE) + bytes_of(ENGINE_PART_COPY)) >> 10,
         bytes_of(ENGINE_PART_COPY) >> 10, allocated >> 10);
  free(image);
  return 0;
}
