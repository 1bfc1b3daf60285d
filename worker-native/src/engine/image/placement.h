/*
 * Where the engine's blocks lie in the image.
 *
 * Used by: the image maker and, in its build only, allocator.c. See placement.c.
 */
#ifndef FLOWCELL_ENGINE_IMAGE_PLACEMENT_H
#define FLOWCELL_ENGINE_IMAGE_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

/* The engine's own allocator functions, or the recorder's and the placer's variants of them. */
uint32_t placement_malloc(void *instance, uint32_t state, uint32_t size);
void placement_free(void *instance, uint32_t state, uint32_t ptr);
uint32_t placement_realloc(void *instance, uint32_t state, uint32_t ptr, uint32_t size);

/* What a block counts for: all that it holds, or while recording and placing what was asked for, rounded up. */
uint32_t placement_block_bytes(uint32_t ptr);

/* What the allocator gave to a block, whoever allocated it. */
uint32_t placement_true_block_bytes(uint32_t ptr);

/* From here on every block is recorded. Before the runtime is made. */
void placement_record(void);

/* From here on the blocks that survived the recording get places side by side, the marked ones last; all others lie in
 * scratch memory. The caller must do exactly what it did while recording. */
void placement_place(void);

/* Back to the engine's own functions. The surviving blocks are now the engine's like any other. Returns how many. */
uint32_t placement_stop(void);

/* Called at each allocation and release, unless NULL. */
extern void (*placement_tick)(void);

/* Marks the surviving block that holds this address. True when there is one that was not marked. */
bool placement_mark(uint32_t address);

/* The true number of bytes in the surviving blocks. */
uint32_t placement_survivor_bytes(void);

#endif
