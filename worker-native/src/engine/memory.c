/*
 * Linear memory and the C stack: reserving, growing, limits, looking.
 *
 * Called by: map_image.c and the image maker (engine_reserve), the worker (limits, spans), imports.c (growth).
 * Trusts the kernel. Numbers from the engine reach it only as a size to grow to and as a span to look at.
 * Kept true: engine_memory.size is exactly the accessible part of the reservation, at all times in which the engine's
 * code can run; what is not accessible holds no bytes of any activation.
 *
 * Huge pages: not for the image, the C stack and the first megabytes of growth, since an activation touches a few dozen
 * pages of them and a huge page would be zeroed anew each time. A heap that grows beyond HUGE_FROM_BYTES may have them:
 * one fault instead of 512 (array-heavy scripts take 10 to 15 % less time).
 */
#include "base/mem.h"
#include "base/sys.h"
#include "engine/engine_state.h"
#include "exit_codes.h"

#define MADV_HUGEPAGE 14
#define MADV_NOHUGEPAGE 15
#define HUGE_FROM_BYTES (UINT64_C(10) << 20)

struct w2c_engine engine_instance;
wasm_rt_memory_t engine_memory;
struct engine_state engine_state;
struct engine_stack engine_stack;
uint8_t *engine_linear_base;

/* What the module declares as its largest memory; the engine's code may take pointers for signed numbers beyond it. */
#define HEAP_BYTES_MAX (UINT32_C(2) << 30)

/* Growth by a fifth, so that a growing heap costs a logarithmic number of calls. */
#define GROWTH_DIVISOR 5

static uint64_t round_up_to_page(uint64_t bytes) {
  return (bytes + ENGINE_PAGE_BYTES - 1) & ~(uint64_t)(ENGINE_PAGE_BYTES - 1);
}

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

static long reserve(uint64_t bytes) {
  long address = sys_mmap(NULL, bytes, SYS_PROT_NONE, SYS_MAP_PRIVATE | SYS_MAP_ANONYMOUS | SYS_MAP_NORESERVE, -1, 0);
  if (address < 0 && address > -4096) return address;
  /* Fails on kernels without huge pages, which is as good. */
  (void)sys_madvise((void *)address, bytes, MADV_NOHUGEPAGE);
  return address;
}

#if defined(__x86_64__)
#define ARCH_SET_GS 0x1001
static long set_base_register(uint8_t *base) { return sys_call(NR_arch_prctl, ARCH_SET_GS, (long)base, 0, 0, 0, 0); }
#else
static long set_base_register(uint8_t *base) {
  (void)base;
  return 0;
}
#endif

int engine_reserve(void) {
  long linear = reserve(ENGINE_RESERVED_BYTES);
  if (linear < 0 && linear > -4096) return (int)linear;
  engine_memory.data = (uint8_t *)linear;
  engine_memory.size = 0;
  (void)sys_madvise(engine_memory.data + HUGE_FROM_BYTES, HEAP_BYTES_MAX - HUGE_FROM_BYTES, MADV_HUGEPAGE);
  engine_linear_base = engine_memory.data;
  engine_instance.w2c_a_a = &engine_memory;
  long result = set_base_register(engine_linear_base);
  if (result < 0) return (int)result;

  long stack = reserve(ENGINE_GUARD_BYTES + ENGINE_C_STACK_BYTES);
  if (stack < 0 && stack > -4096) return (int)stack;
  engine_stack.guard = (uint8_t *)stack;
  result = sys_mprotect(engine_stack.guard + ENGINE_GUARD_BYTES, ENGINE_C_STACK_BYTES, SYS_PROT_READ | SYS_PROT_WRITE);
  if (result < 0) return (int)result;
  return engine_install_fault_handlers();
}

int engine_open(uint64_t bytes) {
  if (bytes <= engine_memory.size) return 0;
  long result = sys_mprotect(engine_memory.data + engine_memory.size, bytes - engine_memory.size,
                             SYS_PROT_READ | SYS_PROT_WRITE);
  if (result < 0) return (int)result;
  engine_memory.size = bytes;
  return 0;
}

bool engine_grow(uint64_t bytes) {
  uint64_t need = round_up_to_page(bytes);
  if (need <= engine_memory.size) return true;
  if (need <= engine_state.heap_bytes_max) {
    uint64_t ample = round_up_to_page(engine_memory.size + engine_memory.size / GROWTH_DIVISOR);
    ample = min_u64(ample, engine_state.heap_bytes_max);
    if (ample > need && engine_open(ample) == 0) return true;
    /* Exactly what is needed: near the cap, or when the kernel's own limit (RLIMIT_DATA) is closer than ours. */
    if (engine_open(need) == 0) return true;
  }
  engine_state.failure = ENGINE_FAILURE_MEMORY;
  engine_state.refused = true;
  return false;
}

void engine_set_limits(uint32_t heap_bytes, uint32_t stack_bytes) {
  uint32_t stack = stack_bytes;
  if (stack < ENGINE_STACK_BYTES_MIN) stack = ENGINE_STACK_BYTES_MIN;
  if (stack > ENGINE_STACK_BYTES_MAX) stack = ENGINE_STACK_BYTES_MAX;
  const uint32_t heap = heap_bytes < HEAP_BYTES_MAX ? heap_bytes : HEAP_BYTES_MAX;
  engine_state.heap_bytes_max = heap & ~(uint32_t)(ENGINE_PAGE_BYTES - 1);
  engine_state.stack_bytes = stack;
  qts_runtime_set_max_stack_size(engine_image.runtime, stack);
  engine_collector_plan();
}

uint32_t engine_heap_now(void) { return (uint32_t)min_u64(engine_memory.size, UINT32_MAX); }

uint32_t engine_heap_peak(void) { return engine_heap_now(); }

uint8_t *engine_span(uint32_t ptr, uint32_t len) {
  /* TRUST: both numbers are the guest's; in 64 bits their sum cannot wrap. */
  if (ptr == 0 || (uint64_t)ptr + len > engine_memory.size) return NULL;
  return engine_memory.data + ptr;
}

uint32_t engine_cstring_length(uint32_t ptr, uint32_t max) {
  if (ptr == 0 || ptr >= engine_memory.size) return UINT32_MAX;
  const uint64_t within = min_u64(engine_memory.size - ptr, (uint64_t)max + 1);
  const uint8_t *text = engine_memory.data + ptr;
  uint64_t at = 0;
  /* Eight bytes at a time while none of them is zero. */
  for (; at + 8 <= within; at += 8) {
    uint64_t word;
    memcpy(&word, text + at, sizeof word);
    if (((word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080)) != 0) break;
  }
  for (; at < within; at++) {
    if (text[at] == 0) return (uint32_t)at;
  }
  return UINT32_MAX;
}
