/*
 * Putting the pristine image into linear memory.
 *
 * Called by: the worker's main, once, before confinement. Trusts the executable.
 *
 * The image is a section of its own in the executable, cut at whole 64 KiB pages. Its pages are not copied: they are
 * moved, as the private file mapping that they are, over the start of linear memory. So the start costs nothing, a
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

int engine_map(void) {
  int result = engine_reserve();
  if (result == 0) result = move_image();
  if (result == 0) result = engine_open(engine_image.top);
  if (result == 0) engine_reset_state();
  return result;
}
