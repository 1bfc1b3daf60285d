/*
 * Frames on the C side: the twin of packages/protocol/src/frame.ts, whose head specifies the layout and the order of
 * the checks. test/vectors/frames.json and the differential fuzzer hold both to the same answers.
 *
 * Called by: the worker's loop, which reads the parent's frames and writes its own; hosted tests, which read both
 * directions. Nothing here allocates, reads, writes or keeps state; it compiles with and without a C library.
 * Kept true: no byte outside what the caller passed is read; a frame that passes frame_check_header and
 * frame_check_body has attachments that frame_next_attachment walks to its exact end.
 */
#ifndef FLOWCELL_WIRE_FRAME_H
#define FLOWCELL_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

/* Bytes behind the fixed fields that a length field can announce. */
#define FRAME_REST_BYTES_MAX (UINT32_MAX - (uint32_t)FRAME_COUNTED_HEADER_BYTES)

struct frame_header {
  uint32_t length;      /* the length field */
  uint32_t rest_length; /* bytes behind the fixed fields: text and attachments */
  uint32_t text_length;
  uint16_t attachment_count;
  uint8_t type;
  uint8_t flags;
};

/* What the receiver expects at the moment. */
struct frame_rules {
  bool from_worker;
  uint8_t phase; /* enum worker_phase */
  uint32_t seen; /* types that came since the phase was entered, a bit each; 0 on entry */
  struct size_limits limits;
};

struct frame_attachments {
  const uint8_t *at;
  const uint8_t *end;
};

/* Checks 1 to 9 on the fixed fields. FRAME_TRUNCATED when `size` is less than FRAME_HEADER_BYTES. */
enum frame_error frame_check_header(const uint8_t *bytes, size_t size, const struct frame_rules *rules,
                                    struct frame_header *header);

/* Checks 10 to 12 on the `header->rest_length` bytes that follow, then notes the message in `rules->seen`. */
enum frame_error frame_check_body(const struct frame_header *header, const uint8_t *rest, struct frame_rules *rules);

/* Checks 1 to 9 of a frame from the parent under the ceilings of every limit, without those of the phase: the
 * worker's loop knows where it is. */
enum frame_error frame_parse_header(const uint8_t *bytes, size_t size, struct frame_header *header);

/* The attachments of a frame whose body passed. */
struct frame_attachments frame_attachments_of(const struct frame_header *header, const uint8_t *rest);

/* The next attachment, false after the last one. */
bool frame_next_attachment(struct frame_attachments *attachments, const uint8_t **bytes, uint32_t *length);

/* The fixed fields of a frame with `rest_length` bytes of text and attachments, at most FRAME_REST_BYTES_MAX. */
void frame_write_header(uint8_t bytes[FRAME_HEADER_BYTES], uint8_t type, uint8_t flags, uint16_t attachment_count,
                        uint32_t text_length, uint32_t rest_length);

/* The name that TypeScript gives an error, "ok" for FRAME_OK. */
const char *frame_error_name(enum frame_error error);

#endif
