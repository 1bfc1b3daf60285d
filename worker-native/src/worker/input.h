/*
 * Standard input as the worker reads it: a bounded buffer in front of read(0).
 *
 * Called by: loop.c, bridge.c. Trust: the bytes are the parent's; they are checked all the same, since a stream
 * out of step must end the worker rather than be guessed at.
 * Kept true: the only system call here is read on descriptor 0; a clean end of input between two frames ends the
 * worker with exit 0, any other end with EXIT_INPUT_ENDED.
 */
#ifndef FLOWCELL_WORKER_INPUT_H
#define FLOWCELL_WORKER_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

/* Large enough that an ordinary activation or a burst of outcomes arrives by one read. */
enum { INPUT_BUFFER_BYTES = 64 * 1024 };

/* Reads and consumes the header of the next frame; a malformed one ends the worker.
 * `between_frames`: the end of input here is the parent's ordinary goodbye. */
void input_frame(struct frame_header *frame, bool between_frames);

/* Copies the next `length` bytes to `target`, past the buffer where they are many. */
void input_take(uint8_t *target, uint32_t length);

/* Drops the next `length` bytes. */
void input_discard(uint32_t length);

/* Whether bytes of a further frame have already arrived. */
bool input_is_buffered(void);

#endif
