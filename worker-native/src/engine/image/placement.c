/*
 * Packs the image: what survives lies side by side, what an activation will write lies together.
 *
 * Called by: make_image.c, which makes the image several times. The first time every block that the engine allocates is
 * recorded, to learn which ones survive. From then on the survivors are allocated beforehand, in a row, and handed out
 * when their turn comes, while everything else (two thirds of the heap is the parser's) goes to scratch memory that no
 * image holds. An activation is tried on the image, which shows what is written, if only a reference count that comes
 * back to what it was; those blocks come last in the row the next time. So an activation writes to two dozen adjacent
 * pages instead of a hundred scattered ones, each of them a page fault.
 *
 * This rests on the engine doing the same each time: block by block the sizes must be equal, or the build ends. For that
 * the engine is told the same usable size for a block wherever it lies.
 */
#include "engine/image/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_state.h"

typedef uint32_t (*malloc_function)(void *, uint32_t, uint32_t);
typedef void (*free_function)(void *, uint32_t, uint32_t);
typedef uint32_t (*realloc_function)(void *, uint32_t, uint32_t, uint32_t);

/* Linear memory while an image is made: the heap, then scratch memory for blocks that do not survive. */
enum { SCRATCH_FROM = 32 << 20, SCRATCH_TO = 1 << 30, BLOCK_ALIGN = 8 };

enum { NO_EVENT = 0 };

/* One allocation: a malloc, or the new block of a realloc. Number 0 is not used. */
struct event {
  uint32_t size;
  uint32_t place; /* the block: where it is, or will be */
  bool survives;
  bool written; /* by the activation that is tried on the image */
};

static enum { OFF, RECORDING, PLACING } mode;
static struct event *events;
static uint32_t event_count = 1, event_room, next_event;
static uint32_t scratch_used;
void (*placement_tick)(void);
/* Which event a block of the heap belongs to; blocks in scratch memory carry the number before their size. */
static uint32_t owners[SCRATCH_FROM / BLOCK_ALIGN];

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "make_image: %s\n", what);
  exit(1);
}

static uint32_t rounded(uint32_t size) {
  /* dlmalloc: at least 12 usable bytes, chunks of multiples of 8 with a header of 4. */
  return size <= 12 ? 12 : ((size + 4 + 7) & ~7u) - 4;
}

static uint32_t event_of(uint32_t ptr) {
  return ptr >= SCRATCH_FROM ? engine_read32(ptr - 8, 0) : owners[ptr / BLOCK_ALIGN];
}

uint32_t placement_true_block_bytes(uint32_t ptr) { return (engine_read32(ptr - 4, 0) & ~7u) - 4; }

uint32_t placement_block_bytes(uint32_t ptr) {
  if (mode == OFF) return placement_true_block_bytes(ptr);
  const uint32_t event = event_of(ptr);
  if (event == NO_EVENT || event >= event_count) fail("a block of unknown origin");
  return rounded(events[event].size);
}

/* ---- the engine's own functions -------------------------------------------------------------------------------- */

static uint32_t own_malloc(void *instance, uint32_t state, uint32_t size) {
  return ((malloc_function)engine_table[engine_layout.def_malloc].func)(instance, state, size);
}

static void own_free(void *instance, uint32_t state, uint32_t ptr) {
  ((free_function)engine_table[engine_layout.def_free].func)(instance, state, ptr);
}

static uint32_t own_realloc(void *instance, uint32_t state, uint32_t ptr, uint32_t size) {
  return ((realloc_function)engine_table[engine_layout.def_realloc].func)(instance, state, ptr, size);
}

/* ---- recording ------------------------------------------------------------------------------------------------- */

static uint32_t record(uint32_t ptr, uint32_t size) {
  if (ptr == 0) fail("no memory in the engine");
  if (ptr >= SCRATCH_FROM) fail("the image needs more than 32 MiB while it is made");
  if (event_count >= event_room) {
    event_room = event_room == 0 ? 1 << 16 : event_room * 2;
    events = realloc(events, event_room * sizeof *events);
    if (events == NULL) fail("no memory");
  }
  events[event_count] = (struct event){.size = size, .place = ptr, .survives = true};
  owners[ptr / BLOCK_ALIGN] = event_count++;
  return ptr;
}

static void record_end(uint32_t ptr) {
  const uint32_t event = owners[ptr / BLOCK_ALIGN];
  if (event == NO_EVENT) fail("a block of unknown origin is freed");
  events[event].survives = false;
  owners[ptr / BLOCK_ALIGN] = NO_EVENT;
}

/* ---- placing --------------------------------------------------------------------------------------------------- */

/* The block of the next allocation. */
static uint32_t place(uint32_t size) {
  const uint32_t number = next_event++;
  if (number >= event_count || events[number].size != size) fail("the engine does not do the same twice");
  if (events[number].survives) {
    owners[events[number].place / BLOCK_ALIGN] = number;
    return events[number].place;
  }
  const uint32_t ptr = SCRATCH_FROM + scratch_used + 8;
  scratch_used += 8 + ((rounded(size) + 7) & ~7u);
  if (scratch_used > SCRATCH_TO - SCRATCH_FROM) fail("the prelude allocates more than the image maker has room for");
  engine_write32(ptr - 8, 0, number);
  return ptr;
}

static void require_scratch(uint32_t ptr) {
  if (ptr < SCRATCH_FROM) fail("a block that survived the first time is freed");
}

/* The engine's count of blocks and of 8 bytes of overhead for each. */
static void count(uint32_t state, uint32_t blocks) {
  engine_write32(state, MALLOC_STATE_COUNT, engine_read32(state, MALLOC_STATE_COUNT) + blocks);
  engine_write32(state, MALLOC_STATE_SIZE, engine_read32(state, MALLOC_STATE_SIZE) + 8 * blocks);
}

/* ---- what allocator.c calls ------------------------------------------------------------------------------------ */

static void tick(void) {
  if (placement_tick != NULL) placement_tick();
}

uint32_t placement_malloc(void *instance, uint32_t state, uint32_t size) {
  tick();
  if (mode == OFF) return own_malloc(instance, state, size);
  if (mode == RECORDING) return record(own_malloc(instance, state, size), size);
  count(state, 1);
  return place(size);
}

void placement_free(void *instance, uint32_t state, uint32_t ptr) {
  tick();
  if (mode == PLACING) {
    require_scratch(ptr);
    count(state, (uint32_t)-1);
    return;
  }
  if (mode == RECORDING) record_end(ptr);
  own_free(instance, state, ptr);
}

uint32_t placement_realloc(void *instance, uint32_t state, uint32_t ptr, uint32_t size) {
  if (mode == OFF) return own_realloc(instance, state, ptr, size);
  if (ptr == 0) return size == 0 ? 0 : placement_malloc(instance, state, size);
  if (size == 0) {
    placement_free(instance, state, ptr);
    return 0;
  }
  const uint32_t before = placement_block_bytes(ptr);
  if (mode == RECORDING) {
    record_end(ptr);
    return record(own_realloc(instance, state, ptr, size), size);
  }
  require_scratch(ptr);
  const uint32_t moved = place(size);
  memcpy(engine_memory.data + moved, engine_memory.data + ptr, before < size ? before : size);
  return moved;
}

/* ---- what make_image.c calls ----------------------------------------------------------------------------------- */

void placement_record(void) { mode = RECORDING; }

static void allocate_survivors(bool written) {
  for (uint32_t at = 1; at < event_count; at++) {
    if (!events[at].survives || events[at].written != written) continue;
    events[at].place = engine_malloc(events[at].size);
    if (events[at].place == 0 || events[at].place >= SCRATCH_FROM) fail("no memory for the image");
  }
}

void placement_place(void) {
  memset(owners, 0, sizeof owners);
  if (!engine_grow(SCRATCH_TO)) fail("no memory");
  allocate_survivors(false);
  allocate_survivors(true);
  next_event = 1;
  scratch_used = 0;
  mode = PLACING;
}

uint32_t placement_stop(void) {
  if (mode == PLACING && next_event != event_count) fail("the engine did less than the first time");
  mode = OFF;
  uint32_t survivors = 0;
  for (uint32_t at = 1; at < event_count; at++) survivors += events[at].survives;
  return survivors;
}

bool placement_mark(uint32_t address) {
  for (uint32_t at = 1; at < event_count; at++) {
    struct event *event = &events[at];
    /* With the word before it, the allocator's own, which it writes when the block is freed. */
    if (!event->survives || address < event->place - 4 || address >= event->place + rounded(event->size)) continue;
    const bool first = !event->written;
    event->written = true;
    return first;
  }
  return false;
}

uint32_t placement_survivor_bytes(void) {
  uint32_t bytes = 0;
  for (uint32_t at = 1; at < event_count; at++) {
    if (events[at].survives) bytes += placement_true_block_bytes(events[at].place);
  }
  return bytes;
}
