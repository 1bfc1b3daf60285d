/* Standard input as the worker reads it; see input.h. */
#include "worker/input.h"

#include "base/mem.h"
#include "base/sys.h"
#include "exit_codes.h"

/* Reset: bytes before `input_end` that are consumed belong to finished frames; the buffer itself is only ever
 * read between the two marks, and nothing of it reaches script (the loop copies what a frame holds). */
static uint8_t input_buffer[INPUT_BUFFER_BYTES];
static uint32_t input_start;
static uint32_t input_end;

static _Noreturn void input_ended(bool between_frames) {
  sys_exit_group(between_frames ? 0 : EXIT_INPUT_ENDED);
}

/* One read into [target, target + length); at least one byte, or the worker ends. */
static uint32_t input_read(uint8_t *target, uint32_t length, bool between_frames) {
  for (;;) {
    long got = sys_read(0, target, length);
    if (got > 0) return (uint32_t)got;
    if (got == 0) input_ended(between_frames);
    if (got != -SYS_EINTR) sys_exit_group(EXIT_INPUT_FAILED);
  }
}

/* The next `length` bytes, not consumed; blocks until they are there. */
static const uint8_t *input_peek(uint32_t length, bool between_frames) {
  if (input_start == input_end) {
    input_start = 0;
    input_end = 0;
  } else if (input_start + length > INPUT_BUFFER_BYTES) {
    memmove(input_buffer, input_buffer + input_start, input_end - input_start);
    input_end -= input_start;
    input_start = 0;
  }
  while (input_end - input_start < length) {
    bool nothing = input_end == input_start;
    input_end += input_read(input_buffer + input_end, INPUT_BUFFER_BYTES - input_end, between_frames && nothing);
  }
  return input_buffer + input_start;
}

void input_frame(struct frame_header *frame, bool between_frames) {
  const uint8_t *bytes = input_peek(FRAME_HEADER_BYTES, between_frames);
  if (frame_parse_header(bytes, FRAME_HEADER_BYTES, frame) != FRAME_OK) sys_exit_group(EXIT_PROTOCOL);
  input_start += FRAME_HEADER_BYTES;
}

void input_take(uint8_t *target, uint32_t length) {
  uint32_t buffered = input_end - input_start;
  uint32_t first = length < buffered ? length : buffered;
  if (first > 0) memcpy(target, input_buffer + input_start, first);
  input_start += first;
  while (first < length) first += input_read(target + first, length - first, false);
}

void input_discard(uint32_t length) {
  uint32_t buffered = input_end - input_start;
  uint32_t first = length < buffered ? length : buffered;
  input_start += first;
  length -= first;
  while (length > 0) {
    uint32_t part = length < INPUT_BUFFER_BYTES ? length : INPUT_BUFFER_BYTES;
    input_start = 0;
    input_end = 0;
    length -= input_read(input_buffer, part, false);
  }
}

bool input_is_buffered(void) { return input_end != input_start; }
