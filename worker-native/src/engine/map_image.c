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

/* Free heap and C stack that even a small script touches; each page more costs every worker 12 µs, each less a fault of 17. */
enum { SPARE_HOT_BYTES = 16 << 10, STACK_HOT_BYTES = 16 << 10 };

/* What an activation does with memory: reads it, or writes it for certain. */
enum use { READ, WRITTEN };

static void visit_written_memory(void (*visit)(uint8_t *from, uint64_t bytes, enum use use)) {
  for (uint32_t at = 0; at < engine_part_count; at++) {
    const struct engine_part part = engine_parts[at];
    const uint32_t bytes = part.to - part.from;
    const uint32_t spare = bytes < SPARE_HOT_BYTES ? bytes : SPARE_HOT_BYTES;
    if (part.kind == ENGINE_PART_COPY) visit(engine_memory.data + part.from, bytes, WRITTEN);
    if (part.kind == ENGINE_PART_CLEAR) visit(engine_memory.data + part.from, spare, WRITTEN);
  }
  uint8_t *const top = engine_stack.guard + ENGINE_GUARD_BYTES + ENGINE_C_STACK_BYTES;
  visit(top - STACK_HOT_BYTES, STACK_HOT_BYTES, WRITTEN);
}

static void visit_code(void (*visit)(uint8_t *from, uint64_t bytes, enum use use)) {
  visit(engine_executable_start, (uint64_t)(engine_code_end - engine_executable_start), READ);
}

/* Only Linux 5.14 and later can; on others the pages come one by one when they are touched. */
static void populate(uint8_t *from, uint64_t bytes, enum use use) {
  (void)sys_madvise(from, bytes, use == WRITTEN ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

/*
 * Puts back the byte that is there. A page that is written must not have been mapped for reading alone before: then the
 * write is the dearest fault of all (64 µs instead of 17 where it was measured), which is what `populate` sees to.
 */
static void touch(uint8_t *from, uint64_t bytes, enum use use) {
  for (uint64_t at = 0; at < bytes; at += ENGINE_STEP_BYTES) {
    volatile uint8_t *const byte = from + at;
    const uint8_t same = *byte;
    if (use == WRITTEN) *byte = same;
  }
}

void engine_touch(void) {
  visit_code(touch);
  visit_written_memory(touch);
  for (uint32_t at = 0; at < engine_part_count; at++) {
    const struct engine_part part = engine_parts[at];
    if (part.kind == ENGINE_PART_COMPARE) touch(engine_memory.data + part.from, part.to - part.from, READ);
  }
}

int engine_map(void) {
  int result = engine_reserve();
  if (result == 0) result = move_image();
  if (result == 0) result = engine_open(engine_image.top);
  if (result != 0) return result;
  /* In a few calls instead of a page fault each. */
  visit_code(populate);
  visit_written_memory(populate);
  engine_reset_state();
  return 0;
}
