/* Standard output as the worker writes it; see output.h. */
#include "worker/output.h"

#include "base/mem.h"
#include "base/sys.h"
#include "exit_codes.h"
#include "wire/frame.h"

/* Reset: empty whenever an activation has ended, since Finished flushes it. */
static uint8_t output_buffer[OUTPUT_BUFFER_BYTES];
static uint32_t output_length;

static void output_write(const uint8_t *bytes, uint32_t length) {
  while (length > 0) {
    long sent = sys_write(1, bytes, length);
    if (sent > 0) {
      bytes += sent;
      length -= (uint32_t)sent;
    } else if (sent != -SYS_EINTR) {
      sys_exit_group(EXIT_OUTPUT_FAILED);
    }
  }
}

void output_flush(void) {
  uint32_t length = output_length;
  output_length = 0;
  output_write(output_buffer, length);
}

void output_bytes(const uint8_t *bytes, uint32_t length) {
  if (length > OUTPUT_BUFFER_BYTES - output_length) output_flush();
  if (length > OUTPUT_BUFFER_BYTES) {
    output_write(bytes, length);
    return;
  }
  if (length > 0) memcpy(output_buffer + output_length, bytes, length);
  output_length += length;
}

void output_frame(uint8_t type, uint8_t flags, uint16_t attachments, uint32_t text_length, uint32_t rest) {
  uint8_t header[FRAME_HEADER_BYTES];
  frame_write_header(header, type, flags, attachments, text_length, rest);
  output_bytes(header, sizeof header);
}
