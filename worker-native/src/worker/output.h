/*
 * Standard output as the worker writes it: frames gathered in a bounded buffer in front of write(1).
 *
 * Called by: loop.c, bridge.c. Kept true: frames leave whole and in order; several leave by one write; a large
 * one is written straight from where it lies. A parent that stops reading blocks the worker here, within the
 * wall deadline that the parent itself holds.
 */
#ifndef FLOWCELL_WORKER_OUTPUT_H
#define FLOWCELL_WORKER_OUTPUT_H

#include <stdint.h>

enum { OUTPUT_BUFFER_BYTES = 64 * 1024 };

/* Starts a frame: its header. `rest` is the number of bytes of text and attachments that follow by output_bytes. */
void output_frame(uint8_t type, uint8_t flags, uint16_t attachments, uint32_t text_length, uint32_t rest);

/* Appends bytes of the started frame. */
void output_bytes(const uint8_t *bytes, uint32_t length);

/* Writes out what is gathered. */
void output_flush(void);

#endif
