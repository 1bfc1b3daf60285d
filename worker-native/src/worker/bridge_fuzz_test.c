/*
 * A fuzzer of the worker's loop and bridge: a subverted engine on one side, a mutated stream of frames on the other.
 *
 *   bridge-fuzz-test [SECONDS [SEED]]   one second and the clock's seed if not given; the seed is printed first
 *
 * The engine is a fake (testing/engine/engine.h): every pointer, length, kind and id that it returns is a random word, often
 * one that nearly fits. Its linear memory is a heap block of exactly its size, so that the sanitizers see a step outside.
 * Properties: no access outside linear memory or the worker's buffers; whatever the engine does, what leaves is a sequence of
 * whole frames of the kinds that a worker sends, the last one possibly cut by an exit; Finished and Refused end with a usage
 * report; every round ends idle, at the end of its input, or by an exit code of the worker's own.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sys.h"
#include "engine/engine.h"
#include "exit_codes.h"
#include "protocol.h"
#include "wire/frame.h"
#include "worker/loop.h"

/* The two files whose buffers outlive a round here, though in a worker an exit takes them along. */
#include "worker/input.c"
#include "worker/output.c"

enum { MEMORY_BYTES = 48 * 1024, INPUT_MAX = 96 * 1024, FUEL = 400 };

static uint64_t state;
static uint64_t rounds;
static uint64_t frames_sent;
static uint64_t reports_seen;

static struct {
  uint8_t *memory; /* MEMORY_BYTES, on the heap */
  uint8_t input[INPUT_MAX];
  size_t input_size, input_at;
  uint8_t *output;
  size_t output_size, output_capacity;
  int fuel; /* steps that the engine may still take in this round; then it is quiet */
  uint32_t hostility; /* one answer in so many is not an honest one; 1: none is */
  bool on_stack;
  jmp_buf exit, abandon;
  int code;
} scene;

/* splitmix64 */
static uint64_t draw(void) {
  uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint32_t below(uint32_t end) { return (uint32_t)(draw() % end); }
static bool rarely(void) { return below(16) == 0; }

/* Values of the honest moments, by their pointer: far between them lies what only a subverted engine returns. */
enum { VALUE_STRING = 1000, VALUE_OBJECT = 1008, VALUE_UNDEFINED = 1016, VALUE_OTHER = 1024, PARTS_AT = 2000, PARTS_BYTES = 12 };

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "bridge-fuzz-test: %s (round %" PRIu64 ")\n", what, rounds);
  abort();
}

static bool hostile(void) { return below(scene.hostility) == 0; }

/* A word as a subverted engine would choose it: mostly inside memory, sometimes at its edges, sometimes anything. */
static uint32_t word(void) {
  switch (below(8)) {
    case 0:
      return (uint32_t)draw();
    case 1:
      return MEMORY_BYTES - below(16);
    case 2:
      return below(4);
    default:
      return 1 + below(MEMORY_BYTES - 1);
  }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

long sys_read(int fd, void *buffer, size_t length) {
  if (fd != 0) fail("read from another descriptor");
  if (rarely()) return -SYS_EINTR;
  size_t left = scene.input_size - scene.input_at;
  size_t part = left < length ? left : length;
  if (part > 1 && below(3) == 0) part = 1 + below((uint32_t)part);
  memcpy(buffer, scene.input + scene.input_at, part);
  scene.input_at += part;
  return (long)part;
}

long sys_write(int fd, const void *buffer, size_t length) {
  if (fd != 1) fail("write to another descriptor");
  if (rarely()) return -SYS_EINTR;
  size_t part = length > 1 && below(3) == 0 ? 1 + below((uint32_t)length) : length;
  if (scene.output_size + part > scene.output_capacity) {
    scene.output_capacity = (scene.output_size + part) * 2;
    scene.output = realloc(scene.output, scene.output_capacity);
    if (scene.output == NULL) abort();
  }
  memcpy(scene.output + scene.output_size, buffer, part);
  scene.output_size += part;
  return (long)part;
}

long sys_clock_gettime(int clock, struct sys_timespec *out) {
  static int64_t now;
  if (clock != SYS_CLOCK_THREAD_CPUTIME) fail("another clock");
  now += (int64_t)below(50000);
  out->seconds = now / 1000000000;
  out->nanoseconds = now % 1000000000;
  return 0;
}

_Noreturn void sys_exit_group(int code) {
  scene.code = code;
  longjmp(scene.exit, 1);
}

/* ---- the engine ------------------------------------------------------------------------------------------------ */

const struct engine_image engine_image = {.runtime = 8, .context = 16, .fn_activate = 24, .fn_start = 32, .fn_refuse = 40,
                                          .fn_deliver = 48, .fn_idle = 56, .fn_rejection = 64, .scratch = 72,
                                          .script_name = 80, .top = 4096};

static void misbehave(void) {
  if (scene.fuel-- <= 0) return;
  switch (below(6)) {
    case 0:
      (void)bridge_interrupt();
      break;
    case 1:
      bridge_rejection(word(), draw(), draw(), (int)below(3));
      break;
    case 2:
    case 3:
    case 4: {
      static const uint32_t types[] = {MESSAGE_HOST_CALL, MESSAGE_CANCEL_CALL, MESSAGE_CONSOLE, MESSAGE_BLOCKED,
                                       MESSAGE_FINISHED, MESSAGE_REFUSED};
      uint32_t id = ENGINE_SENDER_ID(types[below(rarely() ? 6 : 4)], 0u);
      (void)bridge_host_call(word(), word(), 1 + below(2), word(), hostile() ? (uint32_t)draw() : id);
      break;
    }
    default:
      (void)bridge_host_call(word(), word(), below(3), word(),
                             below(2) == 0 ? ENGINE_NATIVE_LAST_FAILURE : ENGINE_NATIVE_CPU_US);
  }
}

static void misbehave_often(void) {
  for (uint32_t times = below(5); times > 0; times--) misbehave();
}

void engine_set_limits(uint32_t heap_bytes, uint32_t stack_bytes) {
  (void)heap_bytes;
  (void)stack_bytes;
}
void engine_reset(void) {
  if (scene.on_stack) fail("reset on the engine's stack");
}
void engine_run_on_stack(void (*fn)(void *), void *arg) {
  if (scene.on_stack) fail("nested on the engine's stack");
  scene.on_stack = true;
  if (setjmp(scene.abandon) == 0) fn(arg);
  scene.on_stack = false;
}
_Noreturn void engine_abandon(void) {
  if (!scene.on_stack) fail("abandon off the engine's stack");
  longjmp(scene.abandon, 1);
}
uint32_t engine_heap_now(void) { return MEMORY_BYTES; }
uint32_t engine_heap_peak(void) { return MEMORY_BYTES; }
uint32_t engine_gc_runs(void) { return below(9); }
enum engine_failure engine_last_failure(void) { return (enum engine_failure)below(3); }
void engine_clear_failure(void) {}
bool engine_memory_refused(void) { return below(2) == 0; }

uint8_t *engine_span(uint32_t ptr, uint32_t len) {
  if (ptr == 0 || (uint64_t)ptr + len > MEMORY_BYTES) return NULL;
  return scene.memory + ptr;
}

uint32_t engine_cstring_length(uint32_t ptr, uint32_t max) {
  for (uint32_t at = 0; at <= max && (uint64_t)ptr + at < MEMORY_BYTES; at++) {
    if (scene.memory[ptr + at] == 0) return at;
  }
  return UINT32_MAX;
}

enum engine_value_kind engine_value_kind(uint32_t value) {
  if (value == 0 || value >= MEMORY_BYTES) return ENGINE_VALUE_INVALID;
  if (value == VALUE_STRING) return ENGINE_VALUE_STRING;
  if (value == VALUE_OBJECT) return ENGINE_VALUE_OBJECT;
  if (value == VALUE_UNDEFINED) return ENGINE_VALUE_UNDEFINED;
  return hostile() ? (enum engine_value_kind)below(9) : ENGINE_VALUE_OTHER;
}

uint32_t engine_malloc(uint32_t bytes) {
  if (hostile()) return word();
  if (bytes > MEMORY_BYTES / 2) return 0;
  return 1 + below(MEMORY_BYTES - bytes - 1);
}
void engine_free(uint32_t ptr) { (void)ptr; }
uint32_t engine_new_text(const uint8_t *text, uint32_t length) {
  uint8_t last = length > 0 ? text[length - 1] : 0;
  return last == 0xff ? 0 : word();
}
uint32_t engine_call(uint32_t fn, uint32_t argc, const uint32_t *argv) {
  uint32_t sum = fn;
  for (uint32_t at = 0; at < argc; at++) sum += argv[at];
  misbehave_often();
  return hostile() ? sum : VALUE_OTHER;
}
bool engine_call_rejection(uint64_t promise, uint64_t reason, int handled) {
  return ((promise ^ reason) & 1) == (uint64_t)(handled != 0);
}
int engine_run_job(void) {
  misbehave_often();
  return scene.fuel > 0 ? (int)below(3) - 1 : 0;
}

uint32_t qts_argv_get_js_value_const_pointer(uint32_t argv, uint32_t index) {
  if (hostile()) return rarely() ? argv + index : word();
  if (index == 0) return VALUE_STRING;
  return below(2) == 0 ? VALUE_UNDEFINED : VALUE_OBJECT;
}
uint32_t qts_eval(uint32_t ctx, uint32_t code, uint32_t length, uint32_t filename, uint32_t detect, uint32_t flags) {
  (void)ctx, (void)filename, (void)detect, (void)flags;
  if (engine_span(code, length) == NULL && length > 0) fail("a script outside of memory");
  misbehave_often();
  return hostile() ? word() : VALUE_OTHER;
}
void qts_free_c_string(uint32_t ctx, uint32_t string) { (void)ctx, (void)string; }
void qts_free_value_pointer(uint32_t ctx, uint32_t value) { (void)ctx, (void)value; }
uint32_t qts_get_array_buffer(uint32_t ctx, uint32_t value) {
  (void)ctx;
  if (hostile()) return rarely() ? value : word();
  const uint32_t sizes[] = {3, PARTS_BYTES - 11};
  memcpy(scene.memory + PARTS_AT, &sizes[0], 4);
  memcpy(scene.memory + PARTS_AT + 7, &sizes[1], 4);
  return PARTS_AT;
}
uint32_t qts_get_array_buffer_length(uint32_t ctx, uint32_t value) {
  (void)ctx, (void)value;
  return hostile() ? (uint32_t)draw() >> below(32) : PARTS_BYTES;
}
uint32_t qts_get_false(void) { return 1; }
uint32_t qts_get_true(void) { return 2; }
uint32_t qts_get_undefined(void) { return 3; }
uint32_t qts_get_string(uint32_t ctx, uint32_t value) {
  (void)ctx;
  return hostile() ? (rarely() ? value : word()) : 1 + below(MEMORY_BYTES - 64);
}
uint32_t qts_is_job_pending(uint32_t runtime) { return (void)runtime, scene.fuel > 0 && below(4) == 0; }
uint32_t qts_new_array_buffer(uint32_t ctx, uint32_t bytes, uint32_t length) {
  (void)ctx;
  if (engine_span(bytes, length) == NULL) fail("a buffer outside of memory");
  return hostile() ? word() : VALUE_OBJECT;
}
uint32_t qts_new_float64(uint32_t ctx, double number) { return (void)ctx, number < 0 ? 0 : word(); }
uint32_t qts_new_string(uint32_t ctx, uint32_t text) {
  return (void)ctx, (void)text, hostile() ? word() : VALUE_STRING;
}
uint32_t qts_resolve_exception(uint32_t ctx, uint32_t value) { return (void)ctx, (void)value, word(); }

/* ---- rounds ---------------------------------------------------------------------------------------------------- */

static void put(const void *bytes, size_t size) {
  if (scene.input_size + size > INPUT_MAX) return;
  memcpy(scene.input + scene.input_size, bytes, size);
  scene.input_size += size;
}

static void put_part(uint32_t size, uint8_t fill) {
  uint8_t part[2048];
  memset(part, fill, sizeof part);
  put(&size, sizeof size);
  put(part, size);
}

/* One frame, right in most of its fields; Activate with its struct and script, Deliver with some attachments. */
static void put_frame(uint8_t type) {
  uint8_t header[FRAME_HEADER_BYTES];
  uint32_t text = below(300);
  uint16_t parts = (uint16_t)(type == MESSAGE_ACTIVATE ? 2 + below(3) : below(3));
  uint32_t sizes[5] = {sizeof(struct activate_budget), below(2000), below(90), below(90), 0};
  if (type != MESSAGE_ACTIVATE) sizes[0] = below(90);
  uint32_t rest = text;
  for (uint16_t at = 0; at < parts; at++) rest += 4 + sizes[at];
  frame_write_header(header, type, (uint8_t)below(2), parts, text, rest);
  put(header, sizeof header);
  uint8_t filling[300];
  memset(filling, rarely() ? 0 : 'a', sizeof filling);
  put(filling, text);
  for (uint16_t at = 0; at < parts; at++) {
    if (at > 0 || type != MESSAGE_ACTIVATE) {
      put_part(sizes[at], rarely() ? 0 : 'b');
      continue;
    }
    struct activate_budget budget = {.size = sizeof budget, .flags = rarely() ? 1 : 0, .cpu_budget_us = rarely() ? 10 : 1000000,
                                     .heap_bytes = rarely() ? 1 : 1 << 25, .stack_bytes = 1 << 20};
    put(&sizes[0], sizeof sizes[0]);
    put(&budget, sizeof budget);
  }
}

static void make_input(void) {
  scene.input_size = 0;
  scene.input_at = 0;
  for (uint32_t count = 1 + below(12); count > 0; count--) {
    put_frame(below(3) == 0 ? MESSAGE_ACTIVATE : MESSAGE_DELIVER);
    if (rarely()) put_frame((uint8_t)draw());
  }
  if (below(4) == 0 && scene.input_size > 0) scene.input[below((uint32_t)scene.input_size)] ^= (uint8_t)(1u << below(8));
  if (rarely()) scene.input_size -= below((uint32_t)scene.input_size);
}

static bool sent_by_workers(uint8_t type) { return type >= MESSAGE_HOST_CALL && type <= MESSAGE_REFUSED; }

/* TRUST: the checker reads what left as the parent would: by the fixed fields, then part by part to the exact end. */
static void check_output(void) {
  size_t at = 0;
  while (scene.output_size - at >= FRAME_HEADER_BYTES) {
    const uint8_t *bytes = scene.output + at;
    uint32_t length, text_length;
    uint16_t parts;
    memcpy(&length, bytes, 4);
    memcpy(&parts, bytes + 6, 2);
    memcpy(&text_length, bytes + 8, 4);
    if (!sent_by_workers(bytes[4])) fail("a frame of a kind that workers do not send");
    if (length < FRAME_COUNTED_HEADER_BYTES || text_length > length - FRAME_COUNTED_HEADER_BYTES) fail("lengths");
    if (scene.output_size - at - 4 < length) break; /* cut by an exit */
    const uint8_t *part = bytes + FRAME_HEADER_BYTES + text_length;
    const uint8_t *end = bytes + 4 + length;
    uint32_t size = 0;
    for (uint16_t count = 0; count < parts; count++) {
      if (end - part < 4) fail("a part without a length");
      memcpy(&size, part, 4);
      if ((size_t)(end - part - 4) < size) fail("a part beyond its frame");
      part += 4 + size;
    }
    if (part != end) fail("bytes behind the last part");
    if (bytes[4] == MESSAGE_FINISHED || bytes[4] == MESSAGE_REFUSED) {
      if (parts == 0 || size != sizeof(struct usage_report)) fail("an end without its report");
      reports_seen++;
    }
    frames_sent++;
    at += 4 + length;
  }
}

static bool known_end(int code) {
  return code == 0 || code == EXIT_PROTOCOL || code == EXIT_INPUT_ENDED || code == EXIT_SENDER;
}

static void one_round(void) {
  make_input();
  for (uint32_t at = 0; at < MEMORY_BYTES; at++) scene.memory[at] = below(8) == 0 ? 0 : (uint8_t)('a' + below(26));
  scene.output_size = 0;
  scene.fuel = FUEL;
  scene.hostility = 1u << below(10);
  scene.on_stack = false;
  input_start = input_end = output_length = 0;
  if (setjmp(scene.exit) == 0) worker_loop();
  if (!known_end(scene.code)) fail("an end that is not the worker's own");
  check_output();
}

int main(int argc, char **argv) {
  double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
  printf("seed %" PRIu64 "\n", state);
  scene.memory = malloc(MEMORY_BYTES);
  if (scene.memory == NULL) return 1;
  clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
  do {
    one_round();
    rounds++;
  } while (clock() < end);
  /* A fuzzer that reaches nothing proves nothing. */
  if (rounds > 500 && (frames_sent < rounds || reports_seen < rounds / 8)) fail("the rounds end too early to tell");
  printf("%" PRIu64 " rounds, %" PRIu64 " frames, %" PRIu64 " reports: all properties hold\n", rounds, frames_sent,
         reports_seen);
  free(scene.memory);
  free(scene.output);
  return 0;
}
