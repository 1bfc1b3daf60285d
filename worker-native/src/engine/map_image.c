/*
 * Putting the pristine image into linear memory.
 *
 * Called by: the worker's main, once, before confinement. Trusts the executable.
 *
 * The image is a section of its own in the executable, cut at whole 64 KiB pages. Its pages are not copied: they are
 * moved, as the private file mapping that they are, over the start of linear memory. So the start costs nothing, a
 * page that nobody writes is the page cache's and shared by all workers, and dropping a written page brings the
 * pristine one back. The image's long run of zeros (the unused shadow stack) is not stored: anonymous pages are zero.
 */
#include "base/sys.h"
#include "engine/engine_state.h"

extern uint8_t engine_image_start[];

static long move(uint8_t *from, uint64_t bytes, uint8_t *to) {
  if (bytes == 0) return 0;
  const long result = sys_mremap(from, bytes, bytes, SYS_MREMAP_MAYMOVE | SYS_MREMAP_FIXED, to);
  return result < 0 && result > -4096 ? result : 0;
}

int engine_map(void) {
  const int reserved = engine_reserve();
  if (reserved < 0) return reserved;
  const uint64_t low = engine_layout.zero_from;
  const uint64_t high = engine_layout.zero_to;
  const uint64_t top = engine_image.top;
  uint8_t *const base = engine_memory.data;
  long result = move(engine_image_start, low, base);
  if (result == 0) result = move(engine_image_start + low, top - high, base + high);
  if (result < 0) return (int)result;
  result = engine_open(top);
  if (result < 0) return (int)result;
  /* The state after a reset is the state before the first activation. */
  engine_reset();
  return 0;
}
