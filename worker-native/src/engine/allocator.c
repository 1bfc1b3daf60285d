/*
 * The engine's allocator functions, replaced so that its count of allocated bytes is true.
 *
 * Called by: the engine, through the four rows of the function table that the image maker wrote into the runtime.
 *
 * The WebAssembly build of QuickJS takes every block for 0 bytes long ("usable size" is not implemented there), so its
 * cycle collector, which runs when the allocated bytes have grown by half, sees no growth:
 * `for (;;) { o = { b: new ArrayBuffer(1e6) }; o.self = o }` dies of 28 dead objects under a cap of 32 MiB. Each
 * replacement does what the original does by calling it, and corrects the count by what the block really holds.
 *
 * When to collect is decided here: QuickJS's own rule would let garbage be a third of the heap, which under a cap is
 * too much, and would collect a small heap every few hundred kilobytes, which costs a tenth of a millisecond each.
 *
 * Trust: pointers and sizes are the engine's, which may be subverted; nothing here touches anything but linear memory.
 */
#include "engine/engine_state.h"
#include "wasm-rt.h"

/* A threshold that no count of bytes can pass: the collector rests. */
#define COLLECTOR_RESTS UINT32_MAX
#define MIB (UINT64_C(1) << 20)
#define LEAST_STEP_BYTES (UINT64_C(16) << 10)

#if defined(ENGINE_IMAGE_MAKER)
#include "engine/image/placement.h"
#define own_malloc placement_malloc
#define own_free placement_free
#define own_realloc placement_realloc
#define block_bytes placement_block_bytes
#else
typedef uint32_t (*malloc_function)(void *, uint32_t, uint32_t);
typedef void (*free_function)(void *, uint32_t, uint32_t);
typedef uint32_t (*realloc_function)(void *, uint32_t, uint32_t, uint32_t);

static uint32_t own_malloc(void *instance, uint32_t state, uint32_t size) {
  return ((malloc_function)engine_table[engine_layout.def_malloc].func)(instance, state, size);
}

static void own_free(void *instance, uint32_t state, uint32_t ptr) {
  ((free_function)engine_table[engine_layout.def_free].func)(instance, state, ptr);
}

static uint32_t own_realloc(void *instance, uint32_t state, uint32_t ptr, uint32_t size) {
  return ((realloc_function)engine_table[engine_layout.def_realloc].func)(instance, state, ptr, size);
}

/* The allocator (dlmalloc) keeps a block's size in the word before it, the lowest three bits being flags; four
 * bytes of the size are that word itself. */
enum { CHUNK_HEADER_BYTES = 4, CHUNK_FLAGS = 7 };

static uint32_t block_bytes(uint32_t ptr) {
  return (engine_read32(ptr - CHUNK_HEADER_BYTES, 0) & ~(uint32_t)CHUNK_FLAGS) - CHUNK_HEADER_BYTES;
}
#endif

/*
 * How much may be allocated beyond `allocated` bytes before the next collection. A collection costs in proportion to
 * what is alive, so the step grows with the heap; garbage may take an eighth of what the cap leaves, but a collection
 * for less than a few megabytes is not worth it unless the cap is small. Where it leaves nothing beyond the engine itself
 * there is still a least step: a collection at every object would burn seconds before the lack of memory is told.
 */
static uint64_t collector_step(uint64_t allocated) {
  const uint64_t cap = engine_state.heap_bytes_max;
  const uint64_t room = cap > engine_image.top ? cap - engine_image.top : 0;
  const uint64_t small = room / 4 < 4 * MIB ? room / 4 : 4 * MIB;
  const uint64_t least = small > LEAST_STEP_BYTES ? small : LEAST_STEP_BYTES;
  const uint64_t grown = allocated / 2 < room / 8 ? allocated / 2 : room / 8;
  return grown > least ? grown : least;
}

/* Off the fast path: asks for a collection, or sees that one has been done. */
__attribute__((cold, noinline)) static void collector_check(uint32_t allocated) {
  const uint32_t runtime = engine_image.runtime;
  if (!engine_state.collecting) {
    /* The next object that is made finds the threshold passed and collects. */
    engine_write32(runtime, RUNTIME_GC_THRESHOLD, 0);
    engine_state.collecting = true;
    engine_state.collect_at = 0;
    return;
  }
  /* Having collected, the engine has set a threshold of its own. */
  if (engine_read32(runtime, RUNTIME_GC_THRESHOLD) == 0) return;
  engine_write32(runtime, RUNTIME_GC_THRESHOLD, COLLECTOR_RESTS);
  engine_state.collecting = false;
  engine_state.collect_at = allocated + collector_step(allocated);
  if (engine_state.gc_runs != UINT32_MAX) engine_state.gc_runs++;
}

static void count(uint32_t state, uint32_t difference) {
  const uint32_t allocated = engine_read32(state, MALLOC_STATE_SIZE) + difference;
  engine_write32(state, MALLOC_STATE_SIZE, allocated);
  if (__builtin_expect(allocated >= engine_state.collect_at, 0)) collector_check(allocated);
}

uint32_t engine_js_malloc(void *instance, uint32_t state, uint32_t size) {
  const uint32_t ptr = own_malloc(instance, state, size);
  if (ptr != 0) count(state, block_bytes(ptr));
  return ptr;
}

void engine_js_free(void *instance, uint32_t state, uint32_t ptr) {
  if (ptr == 0) return;
  engine_write32(state, MALLOC_STATE_SIZE, engine_read32(state, MALLOC_STATE_SIZE) - block_bytes(ptr));
  own_free(instance, state, ptr);
}

uint32_t engine_js_realloc(void *instance, uint32_t state, uint32_t ptr, uint32_t size) {
  const uint32_t before = ptr != 0 ? block_bytes(ptr) : 0;
  const uint32_t moved = own_realloc(instance, state, ptr, size);
  if (moved != 0) {
    count(state, block_bytes(moved) - before);
  } else if (size == 0) {
    /* The block was freed. A failed growth leaves it as it was. */
    engine_write32(state, MALLOC_STATE_SIZE, engine_read32(state, MALLOC_STATE_SIZE) - before);
  }
  return moved;
}

uint32_t engine_js_usable_size(void *instance, uint32_t ptr) {
  (void)instance;
  return ptr != 0 ? block_bytes(ptr) : 0;
}

void engine_collector_plan(void) {
  if (engine_state.collecting) return;
  const uint32_t allocated = engine_read32(engine_image.runtime, RUNTIME_MALLOC_STATE + MALLOC_STATE_SIZE);
  engine_state.collect_at = allocated + collector_step(allocated);
}

uint32_t engine_gc_runs(void) { return engine_state.gc_runs; }
