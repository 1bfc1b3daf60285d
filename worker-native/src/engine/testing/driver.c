/*
 * Test driver: runs scripts in the engine exactly as a worker maps and resets it, without a worker around it.
 *
 * Called by: the tests in test/engine and the compute benchmark. One command per process; results are lines of JSON.
 *
 *   eval [heap=BYTES] [stack=BYTES] [repeat=N] [abandon=N]   evaluates the script on standard input, repeatedly with a
 *                                                reset between, and leaves it at an interrupt
 *   start                                        hands the script (a function expression) to the prelude's start()
 *   calls                                        calls each of the image's functions once
 *   reset                                        dirties everything that a script can, resets, looks for traces
 *   abandon N                                    leaves a running script N times from the interrupt hook
 *   die KIND                                     ends by a fault: address, table, row, abort, memory, stack, null
 *   time N                                       reset, evaluation and reading the result, in microseconds
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "engine/engine_state.h"
#include "engine_imports.h"

struct options {
  uint32_t heap_bytes;
  uint32_t stack_bytes;
  unsigned long repeat;
  const char *script;
  uint32_t script_length;
};

static unsigned long interrupts;
static unsigned long abandon_after; /* interrupts; 0: never */
static unsigned long host_calls;

_Noreturn static void fail(const char *what) {
  fprintf(stderr, "engine-driver: %s\n", what);
  exit(2);
}

static double microseconds(int clock) {
  struct sys_timespec now = {0, 0};
  if (sys_clock_gettime(clock, &now) != 0) fail("no clock");
  return (double)now.seconds * 1e6 + (double)now.nanoseconds / 1e3;
}

/* ---- the bridge ------------------------------------------------------------------------------------------------ */

static void print_text(const uint8_t *text, uint32_t length);

uint32_t bridge_host_call(uint32_t ctx, uint32_t this_ptr, uint32_t argc, uint32_t argv, uint32_t host_ref_id) {
  (void)this_ptr;
  host_calls++;
  if (host_ref_id == ENGINE_NATIVE_LAST_FAILURE) {
    static const char *const names[] = {"", "memory", "stack"};
    const char *name = names[engine_last_failure()];
    return engine_new_text((const uint8_t *)name, (uint32_t)strlen(name));
  }
  if (host_ref_id == ENGINE_NATIVE_CPU_US) return qts_new_float64(ctx, 12.5);
  printf("{\"host_call\":%u,\"arguments\":[", host_ref_id);
  for (uint32_t at = 0; at < argc; at++) {
    const uint32_t value = qts_argv_get_js_value_const_pointer(argv, at);
    printf("%s%d", at == 0 ? "" : ",", (int)engine_value_kind(value));
  }
  printf("]}\n");
  return 0;
}

int bridge_interrupt(void) {
  interrupts++;
  if (abandon_after != 0 && interrupts >= abandon_after) engine_abandon();
  return 0;
}

void bridge_rejection(uint32_t ctx, uint64_t promise, uint64_t reason, int handled) {
  (void)ctx;
  if (!engine_call_rejection(promise, reason, handled)) printf("{\"rejection\":\"threw\"}\n");
}

/* The benchmark measures itself with Date.now(): processor time, so that other processes do not count. */
double bridge_now_ms(void) { return microseconds(SYS_CLOCK_PROCESS_CPUTIME) / 1e3; }

/* ---- results --------------------------------------------------------------------------------------------------- */

static void print_text(const uint8_t *text, uint32_t length) {
  putchar('"');
  for (uint32_t at = 0; at < length; at++) {
    const uint8_t byte = text[at];
    if (byte == '"' || byte == '\\') {
      printf("\\%c", byte);
    } else if (byte < 0x20) {
      printf("\\u%04x", byte);
    } else {
      putchar(byte);
    }
  }
  putchar('"');
}

static void print_string_of(uint32_t value) {
  const uint32_t string = qts_get_string(engine_image.context, value);
  const uint32_t length = engine_cstring_length(string, 1 << 24);
  const uint8_t *span = length != UINT32_MAX ? engine_span(string, length) : NULL;
  if (span == NULL) {
    printf("null");
  } else {
    print_text(span, length);
    qts_free_c_string(engine_image.context, string);
  }
}

/* How deep the C stack has been: from the lowest page that is in memory. */
static uint64_t c_stack_bytes(void) {
  static unsigned char resident[ENGINE_C_STACK_BYTES / 4096];
  uint8_t *const stack = engine_stack.guard + ENGINE_GUARD_BYTES;
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (sys_call(NR_mincore, sys_pointer(stack), ENGINE_C_STACK_BYTES, sys_pointer(resident), 0, 0, 0) != 0) fail("no mincore");
  uint64_t lowest = 0;
  while (lowest < ENGINE_C_STACK_BYTES && (resident[lowest / (uint64_t)page_bytes] & 1) == 0) lowest += (uint64_t)page_bytes;
  return ENGINE_C_STACK_BYTES - lowest;
}

static const char *const failure_names[] = {"none", "memory", "stack"};

static void print_result(uint32_t result) {
  const enum engine_failure failure = engine_last_failure();
  const enum engine_value_kind kind = engine_value_kind(result);
  const bool thrown = kind == ENGINE_VALUE_EXCEPTION || kind == ENGINE_VALUE_INVALID;
  printf("{\"outcome\":\"%s\",\"text\":", thrown ? "exception" : "value");
  const uint32_t value =
      kind == ENGINE_VALUE_EXCEPTION ? qts_resolve_exception(engine_image.context, result) : result;
  print_string_of(value);
  printf(",\"kind\":%d,\"failure\":\"%s\",\"heapPeakBytes\":%u,\"gcRuns\":%u,\"interrupts\":%lu,\"cStackBytes\":%llu}\n",
         (int)engine_value_kind(value), failure_names[failure], engine_heap_peak(), engine_gc_runs(), interrupts,
         (unsigned long long)c_stack_bytes());
}

static uint32_t evaluate(const char *text, uint32_t length) {
  const uint32_t source = engine_malloc(length + 1);
  uint8_t *span = engine_span(source, length + 1);
  if (span == NULL) return 0;
  memcpy(span, text, length);
  span[length] = 0;
  const uint32_t result = qts_eval(engine_image.context, source, length, engine_image.script_name, 0, 0);
  engine_free(source);
  return result;
}

static void begin(const struct options *options) {
  interrupts = 0;
  engine_set_limits(options->heap_bytes, options->stack_bytes);
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static void eval_command(void *argument) {
  const struct options *options = argument;
  begin(options);
  print_result(evaluate(options->script, options->script_length));
}

static void start_command(void *argument) {
  const struct options *options = argument;
  begin(options);
  const uint32_t fn = evaluate(options->script, options->script_length);
  if (engine_value_kind(fn) != ENGINE_VALUE_OBJECT) {
    print_result(fn);
    return;
  }
  print_result(engine_call(engine_image.fn_start, 1, &fn));
  int jobs = 0;
  for (int ran = engine_run_job(); ran != 0; ran = engine_run_job()) jobs += ran == 1;
  printf("{\"jobs\":%d}\n", jobs);
  print_result(engine_call(engine_image.fn_idle, 0, NULL));
}

static void calls_command(void *argument) {
  begin(argument);
  const uint32_t text = engine_new_text((const uint8_t *)"{\"a\":1}", 7);
  const uint32_t bytes = engine_malloc(4);
  memset(engine_span(bytes, 4), 0, 4);
  const uint32_t buffer = qts_new_array_buffer(engine_image.context, bytes, 4);
  const uint32_t arguments[] = {text, buffer, qts_get_true()};
  print_result(engine_call(engine_image.fn_activate, 1, arguments));
  print_result(engine_call(engine_image.fn_deliver, 3, arguments));
  print_result(engine_call(engine_image.fn_idle, 0, NULL));
  const uint32_t thrown = evaluate("(", 1);
  const uint32_t error = qts_resolve_exception(engine_image.context, thrown);
  print_result(engine_call(engine_image.fn_refuse, 1, &error));
}

/* Everything that a script can leave behind: globals, built-ins changed, heap, stack, garbage, jobs, a dead runtime. */
static const char dirty_script[] =
    "globalThis.left = 'a trace to look for'; Array.prototype.left = left; Math.random();"
    "Promise.resolve().then(() => left);"
    "for (let i = 0, a = []; i < 100; i++) { a.push(new Uint8Array(100000).fill(0x5a)); globalThis.keep = a }"
    "(function deep(n) { return n > 0 ? deep(n - 1) + 1 : 0 })(4000);"
    "try { (function f() { f() })() } catch {}"
    "let s = 0; for (let i = 0; i < 3e6; i++) s += Math.random(); s";

static void dirty(void *argument) {
  begin(argument);
  const uint32_t result = evaluate(dirty_script, (uint32_t)strlen(dirty_script));
  if (engine_value_kind(result) != ENGINE_VALUE_NUMBER) fail("the dirtying script threw");
}

static void random_command(void *argument) {
  static const char script[] = "Math.random() + ' ' + typeof left + ' ' + [].left + ' ' + Object.keys(globalThis)";
  begin(argument);
  print_result(evaluate(script, (uint32_t)strlen(script)));
}

/* Whether the byte at `address` is accessible: the kernel refuses to write out what is not. */
static bool is_readable(const uint8_t *address) {
  int ends[2];
  if (pipe(ends) != 0) fail("no pipe");
  const bool readable = sys_write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

static uint64_t count_nonzero(const uint8_t *bytes, uint64_t length) {
  uint64_t found = 0;
  for (uint64_t at = 0; at < length; at++) found += bytes[at] != 0;
  return found;
}

static void reset_command(struct options *options) {
  const uint32_t top = engine_image.top;
  uint8_t *const pristine = malloc(top);
  if (pristine == NULL) fail("no memory");
  memcpy(pristine, engine_memory.data, top);
  const struct engine_state state = engine_state;
  const struct w2c_engine instance = engine_instance;
  const uint8_t *const stack = engine_stack.guard + ENGINE_GUARD_BYTES;
  engine_touch();
  const bool untouched = memcmp(pristine, engine_memory.data, top) == 0 && count_nonzero(stack, ENGINE_C_STACK_BYTES) == 0;
  printf("{\"untouched\":%s}\n", untouched ? "true" : "false");
  engine_run_on_stack(random_command, options);
  engine_reset();
  engine_run_on_stack(dirty, options);
  const uint64_t size = engine_memory.size;
  const bool dirtied = size > top && memcmp(pristine, engine_memory.data, top) != 0 && engine_gc_runs() > 0 &&
                       engine_last_failure() == ENGINE_FAILURE_STACK && is_readable(engine_memory.data + size - 1);
  engine_reset();
  printf("{\"dirtied\":%s,\"image\":%s,\"above\":%s,\"top\":%s,\"size\":%s,\"state\":%s,\"instance\":%s,\"stackBytes\":%llu}\n",
         dirtied ? "true" : "false", memcmp(pristine, engine_memory.data, top) == 0 ? "true" : "false",
         is_readable(engine_memory.data + top) || is_readable(engine_memory.data + size - 1) ? "false" : "true",
         is_readable(engine_memory.data + top - 1) ? "true" : "false", engine_memory.size == top ? "true" : "false",
         memcmp(&state, &engine_state, sizeof state) == 0 ? "true" : "false",
         memcmp(&instance, &engine_instance, sizeof instance) == 0 ? "true" : "false",
         (unsigned long long)count_nonzero(stack, ENGINE_C_STACK_BYTES));
  engine_run_on_stack(random_command, options);
  /* What growth brings back is zero. */
  if (engine_open(size) != 0) fail("cannot grow");
  printf("{\"regrownBytes\":%llu}\n", (unsigned long long)count_nonzero(engine_memory.data + top, size - top));
  free(pristine);
}

static void abandon_script(void *argument) {
  static const char script[] =
      "const a = []; for (let i = 0;; i++) { a.push({ i, s: 'x' + i, f: () => i }); a.sort((x, y) => y.i - x.i) }";
  begin(argument);
  evaluate(script, (uint32_t)strlen(script));
  fail("a script without end ended");
}

static void check_script(void *argument) {
  static const char script[] = "[typeof a, [3, 1, 2].sort().join(), JSON.stringify({ k: [1, 'x'] })].join('|')";
  begin(argument);
  const uint32_t result = evaluate(script, (uint32_t)strlen(script));
  const uint32_t text = qts_get_string(engine_image.context, result);
  const uint8_t *span = engine_span(text, 64);
  if (span == NULL || strncmp((const char *)span, "undefined|1,2,3|{\"k\":[1,\"x\"]}", 64) != 0)
    fail("a script went wrong after a reset");
}

static void abandon_command(struct options *options, unsigned long count) {
  for (unsigned long at = 0; at < count; at++) {
    /* At another point each time, down to the first interrupt. */
    abandon_after = 1 + at % 37;
    engine_run_on_stack(abandon_script, options);
    engine_reset();
    abandon_after = 0;
    engine_run_on_stack(check_script, options);
    engine_reset();
  }
  printf("{\"abandoned\":%lu}\n", count);
}

/* Deeper than the C stack, half a page at a time. */
__attribute__((noinline)) static int recurse(int depth) {
  volatile char page[2048];
  page[0] = (char)depth;
  return depth == 0 ? page[0] : recurse(depth - 1) + page[0];
}

static void die_command(void *argument) {
  const char *kind = argument;
  if (strcmp(kind, "address") == 0) {
    qts_get_float64(engine_image.context, 0xfffffff0);
  } else if (strcmp(kind, "table") == 0) {
    /* The runtime's allocator becomes a function of another type. */
    engine_write32(engine_image.runtime, RUNTIME_MALLOC, engine_layout.def_realloc);
    qts_new_object(engine_image.context);
  } else if (strcmp(kind, "row") == 0) {
    engine_write32(engine_image.runtime, RUNTIME_MALLOC, 100000);
    qts_new_object(engine_image.context);
  } else if (strcmp(kind, "abort") == 0) {
    /* Freeing what was never allocated: the engine's allocator aborts. */
    engine_import_abort(NULL);
  } else if (strcmp(kind, "memory") == 0) {
    if (engine_grow(engine_image.top + 1)) fail("memory beyond the cap");
    engine_import_abort(NULL);
  } else if (strcmp(kind, "stack") == 0) {
    recurse(1 << 30);
  } else if (strcmp(kind, "null") == 0) {
    volatile uintptr_t nowhere = 16;
    *(volatile int *)nowhere = 1;
  }
  fail("survived");
}

static void time_script(void *argument) {
  begin(argument);
  const uint32_t text = qts_get_string(engine_image.context, evaluate("1+1", 3));
  const uint8_t *span = engine_span(text, 2);
  if (span == NULL || span[0] != '2') fail("1+1 is not 2");
}

static void nothing(void *argument) { (void)argument; }

static void time_command(struct options *options, unsigned long count) {
  double start = microseconds(SYS_CLOCK_PROCESS_CPUTIME);
  for (unsigned long at = 0; at < count; at++) {
    engine_run_on_stack(time_script, options);
    engine_reset();
  }
  const double both = (microseconds(SYS_CLOCK_PROCESS_CPUTIME) - start) / (double)count;
  start = microseconds(SYS_CLOCK_PROCESS_CPUTIME);
  for (unsigned long at = 0; at < count; at++) {
    engine_run_on_stack(nothing, NULL);
    engine_reset();
  }
  const double clean = (microseconds(SYS_CLOCK_PROCESS_CPUTIME) - start) / (double)count;
  double resets = 0;
  for (unsigned long at = 0; at < count; at++) {
    engine_run_on_stack(time_script, options);
    start = microseconds(SYS_CLOCK_PROCESS_CPUTIME);
    engine_reset();
    resets += microseconds(SYS_CLOCK_PROCESS_CPUTIME) - start;
  }
  printf("{\"evalAndResetUs\":%.1f,\"resetUs\":%.1f,\"cleanResetUs\":%.1f}\n", both, resets / (double)count, clean);
}

static char *read_script(uint32_t *length) {
  size_t size = 0, room = 1 << 16;
  char *text = malloc(room);
  for (size_t got = 1; text != NULL && got > 0;) {
    got = fread(text + size, 1, room - size, stdin);
    size += got;
    if (size == room) text = realloc(text, room *= 2);
  }
  if (text == NULL) fail("no memory");
  *length = (uint32_t)size;
  return text;
}

static void read_option(struct options *options, const char *word) {
  const char *value = strchr(word, '=');
  if (value == NULL) fail("an option has the form name=number");
  const unsigned long number = strtoul(value + 1, NULL, 10);
  if (strncmp(word, "heap=", 5) == 0) {
    options->heap_bytes = (uint32_t)number;
  } else if (strncmp(word, "stack=", 6) == 0) {
    options->stack_bytes = (uint32_t)number;
  } else if (strncmp(word, "abandon=", 8) == 0) {
    abandon_after = number;
  } else if (strncmp(word, "repeat=", 7) == 0) {
    options->repeat = number;
  } else {
    fail("unknown option");
  }
}

int main(int argc, char **argv) {
  if (argc < 2) fail("a command is needed; see the head of driver.c");
  const char *command = argv[1];
  struct options options = {.heap_bytes = 64u << 20, .stack_bytes = ENGINE_STACK_BYTES_MAX, .repeat = 1};
  for (int at = 2; at < argc && strchr(argv[at], '=') != NULL; at++) read_option(&options, argv[at]);
  const unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
  const double start = microseconds(SYS_CLOCK_MONOTONIC);
  if (engine_map() != 0) fail("engine_map failed");
  const double mapped = microseconds(SYS_CLOCK_MONOTONIC) - start;
  if (strcmp(command, "eval") == 0 || strcmp(command, "start") == 0) {
    options.script = read_script(&options.script_length);
    for (unsigned long at = 0; at < options.repeat; at++) {
      engine_run_on_stack(command[0] == 'e' ? eval_command : start_command, &options);
      engine_reset();
    }
  } else if (strcmp(command, "calls") == 0) {
    engine_run_on_stack(calls_command, &options);
  } else if (strcmp(command, "reset") == 0) {
    reset_command(&options);
  } else if (strcmp(command, "abandon") == 0) {
    abandon_command(&options, count);
  } else if (strcmp(command, "die") == 0) {
    engine_run_on_stack(die_command, argv[2]);
  } else if (strcmp(command, "time") == 0) {
    printf("{\"mapUs\":%.1f}\n", mapped);
    time_command(&options, count);
  } else {
    fail("unknown command");
  }
  return 0;
}
