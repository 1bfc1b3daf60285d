/*
 * Putting the pristine image into linear memory.
 *
 * Called by: the worker's main, once, before confinement. Trusts the executable.
 *
 * The image is a section of its own in the executable, cut at whole 64 KiB pages. Its pages are not copied: they are
 * moved, as the private file mapping that they are, over the start of linear memory. So the start costs little, a
 * page that nobody writes is the page cache's and shared by all workers, and dropping a written page brings the
 * pristine one back. Long runs of zeros are not stored: anonymous pages are zero.
 */
#include "base/sys.h"
#include "engine/engine_state.h"

static bool is_stored(enum engine_part_kind kind) { return kind == ENGINE_PART_COMPARE || kind == ENGINE_PART_COPY; }

/* Moves the stored parts, neighbours in one go. 0 or a negative error number. */
static int move_image(void) {
  uint8_t *stored = engine_image_start;
  for (uint32_t at = 0; at < engine_part_count; at++) {
    if (!is_stored(engine_parts[at].kind)) continue;
    const uint32_t from = engine_parts[at].from;
    while (at + 1 < engine_part_count && is_stored(engine_parts[at + 1].kind)) at++;
    const uint32_t bytes = engine_parts[at].to - from;
    const long moved =
        sys_mremap(stored, bytes, bytes, SYS_MREMAP_MAYMOVE | SYS_MREMAP_FIXED, engine_memory.data + from);
    if (moved < 0 && moved > -4096) return (int)moved;
    stored += bytes;
  }
  return 0;
}

#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23

/* The linker's names for the first byte of the executable and the end of its code. */
extern uint8_t engine_executable_start[] __asm__("__executable_start");
extern uint8_t engine_code_end[] __asm__("etext");

/* Free heap and C stack that even a small script touches. */
enum { SPARE_POPULATED_BYTES = 64 << 10, STACK_POPULATED_BYTES = 32 << 10 };

static void populate(uint8_t *from, uint64_t bytes, int how) {
  /* Only Linux 5.14 and later can; on others the pages come one by one when they are touched. */
  (void)sys_madvise(from, bytes, how);
}

/* Maps the code, and makes the pages that every activation writes private, in a few calls now instead of by a page fault
 * each: the first activation, for which somebody waits, would have to; a spare worker has it behind it. */
static void populate_hot_pages(void) {
  uint8_t *const code = engine_executable_start;
  populate(code, (uint64_t)(engine_code_end - code), MADV_POPULATE_READ);
  for (uint32_t at = 0; at < engine_part_count; at++) {
    const struct engine_part part = engine_parts[at];
    const uint32_t bytes = part.to - part.from;
    const uint32_t spare = bytes < SPARE_POPULATED_BYTES ? bytes : SPARE_POPULATED_BYTES;
    if (part.kind == ENGINE_PART_COPY) populate(engine_memory.data + part.from, bytes, MADV_POPULATE_WRITE);
    if (part.kind == ENGINE_PART_CLEAR) populate(engine_memory.data + part.from, spare, MADV_POPULATE_WRITE);
  }
  uint8_t *const top = engine_stack.guard + ENGINE_GUARD_BYTES + ENGINE_C_STACK_BYTES;
  populate(top - STACK_POPULATED_BYTES, STACK_POPULATED_BYTES, MADV_POPULATE_WRITE);
}

int engine_map(void) {
  int result = engine_reserve();
  if (result == 0) result = move_image();
  if (result == 0) result = engine_open(engine_image.top);
  if (result != 0) return result;
  populate_hot_pages();
  engine_reset_state();
  return 0;
}
