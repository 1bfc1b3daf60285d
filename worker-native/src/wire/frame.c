/* Frames on the C side; see frame.h, and the head of packages/protocol/src/frame.ts for the order of the checks. */
#include "wire/frame.h"

static const struct message_row MESSAGES[MESSAGE_ROWS_COUNT] = MESSAGE_ROWS;

static const struct message_row *frame_row(uint8_t type) {
  for (size_t at = 0; at < MESSAGE_ROWS_COUNT; at++) {
    if (MESSAGES[at].type == type) return &MESSAGES[at];
  }
  return NULL;
}

/* Below 2^32 * 256 * 6, so 64 bits hold it. */
static uint64_t frame_size(const struct size_expression *size, const struct size_limits *limits) {
  uint64_t sum = size->fixed;
#define X(limit) sum += (uint64_t)size->limit * limits->limit;
  SIZE_LIMITS(X)
#undef X
  return sum;
}

static uint64_t frame_length_max(const struct message_row *row, const struct size_limits *limits) {
  return FRAME_COUNTED_HEADER_BYTES + frame_size(&row->text, limits) +
         (uint64_t)row->attachments_max * FRAME_ATTACHMENT_HEADER_BYTES + frame_size(&row->attachments, limits);
}

static uint32_t frame_u32(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void frame_put_u32(uint8_t *bytes, uint32_t value) {
  bytes[0] = (uint8_t)value;
  bytes[1] = (uint8_t)(value >> 8);
  bytes[2] = (uint8_t)(value >> 16);
  bytes[3] = (uint8_t)(value >> 24);
}

/* Checks 4 and 5. */
static enum frame_error frame_check_phase(const struct message_row *row, const struct frame_rules *rules) {
  uint32_t bit = UINT32_C(1) << row->type;
  if ((row->phases & rules->phase) == 0) return FRAME_UNEXPECTED_MESSAGE;
  if (row->occurs == OCCURS_FIRST && rules->seen != 0 && (rules->seen & bit) == 0) return FRAME_UNEXPECTED_MESSAGE;
  if (row->occurs != OCCURS_OFTEN && (rules->seen & bit) != 0) return FRAME_REPEATED_MESSAGE;
  return FRAME_OK;
}

/* Checks 6 to 9. */
static enum frame_error frame_check_sizes(const struct message_row *row, const struct size_limits *limits,
                                          const struct frame_header *header) {
  uint8_t flags = row->value == VALUE_NEVER ? 0 : FRAME_FLAG_DEVALUE;
  if ((header->flags & ~flags) != 0) return FRAME_UNKNOWN_FLAGS;
  if (header->length > frame_length_max(row, limits)) return FRAME_TOO_LONG;
  if (header->attachment_count > row->attachments_max) return FRAME_TOO_MANY_ATTACHMENTS;
  if (header->attachment_count < row->attachments_min) return FRAME_MISSING_ATTACHMENTS;
  if (header->text_length > frame_size(&row->text, limits)) return FRAME_TEXT_TOO_LONG;
  uint64_t least = (uint64_t)header->text_length + (uint64_t)header->attachment_count * FRAME_ATTACHMENT_HEADER_BYTES;
  if (least > header->rest_length) return FRAME_LENGTH_MISMATCH;
  return FRAME_OK;
}

/* `rules` is NULL where phases are not judged. */
static enum frame_error frame_check(const uint8_t *bytes, size_t size, bool from_worker, const struct frame_rules *rules,
                                    const struct size_limits *limits, struct frame_header *header) {
  if (size < FRAME_HEADER_BYTES) return FRAME_TRUNCATED;
  header->length = frame_u32(bytes);
  if (header->length < FRAME_COUNTED_HEADER_BYTES) return FRAME_SHORT_LENGTH;
  header->rest_length = header->length - FRAME_COUNTED_HEADER_BYTES;
  header->type = bytes[4];
  header->flags = bytes[5];
  header->attachment_count = (uint16_t)(bytes[6] | bytes[7] << 8);
  header->text_length = frame_u32(bytes + 8);
  const struct message_row *row = frame_row(header->type);
  if (row == NULL) return FRAME_UNKNOWN_TYPE;
  if (row->from_worker != from_worker) return FRAME_WRONG_SENDER;
  if (rules != NULL) {
    enum frame_error error = frame_check_phase(row, rules);
    if (error != FRAME_OK) return error;
  }
  return frame_check_sizes(row, limits, header);
}

enum frame_error frame_check_header(const uint8_t *bytes, size_t size, const struct frame_rules *rules,
                                    struct frame_header *header) {
  return frame_check(bytes, size, rules->from_worker, rules, &rules->limits, header);
}

enum frame_error frame_parse_header(const uint8_t *bytes, size_t size, struct frame_header *header) {
  static const struct size_limits ceilings = SIZE_CEILINGS;
  return frame_check(bytes, size, false, NULL, &ceilings, header);
}

/* The length of the UTF-8 sequence at `bytes`, 0 if there is none within `size` bytes. */
static size_t frame_utf8_sequence(const uint8_t *bytes, size_t size) {
  uint8_t lead = bytes[0];
  if (lead < 0x80) return 1;
  /* C0 and C1 would be overlong, F5 and above pass U+10FFFF. */
  size_t length = lead >= 0xc2 && lead <= 0xdf ? 2 : (lead & 0xf0) == 0xe0 ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
  if (length == 0 || length > size) return 0;
  for (size_t at = 1; at < length; at++) {
    if ((bytes[at] & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && bytes[1] < 0xa0) return 0; /* overlong */
  if (lead == 0xed && bytes[1] > 0x9f) return 0; /* surrogate */
  if (lead == 0xf0 && bytes[1] < 0x90) return 0; /* overlong */
  if (lead == 0xf4 && bytes[1] > 0x8f) return 0; /* above U+10FFFF */
  return length;
}

static bool frame_is_utf8(const uint8_t *bytes, size_t size) {
  while (size > 0) {
    size_t length = frame_utf8_sequence(bytes, size);
    if (length == 0) return false;
    bytes += length;
    size -= length;
  }
  return true;
}

struct frame_attachments frame_attachments_of(const struct frame_header *header, const uint8_t *rest) {
  return (struct frame_attachments){.at = rest + header->text_length, .end = rest + header->rest_length};
}

bool frame_next_attachment(struct frame_attachments *attachments, const uint8_t **bytes, uint32_t *length) {
  size_t left = (size_t)(attachments->end - attachments->at);
  if (left < FRAME_ATTACHMENT_HEADER_BYTES) return false;
  uint32_t size = frame_u32(attachments->at);
  left -= FRAME_ATTACHMENT_HEADER_BYTES;
  if (size > left) return false;
  *bytes = attachments->at + FRAME_ATTACHMENT_HEADER_BYTES;
  *length = size;
  attachments->at = *bytes + size;
  return true;
}

enum frame_error frame_check_body(const struct frame_header *header, const uint8_t *rest, struct frame_rules *rules) {
  const struct message_row *row = frame_row(header->type);
  if (row == NULL) return FRAME_UNKNOWN_TYPE;
  struct frame_attachments attachments = frame_attachments_of(header, rest);
  const uint8_t *bytes;
  uint32_t length;
  uint64_t sum = 0;
  for (uint32_t count = 0; count < header->attachment_count; count++) {
    if (!frame_next_attachment(&attachments, &bytes, &length)) return FRAME_LENGTH_MISMATCH;
    sum += length;
  }
  if (attachments.at != attachments.end) return FRAME_LENGTH_MISMATCH;
  if (sum > frame_size(&row->attachments, &rules->limits)) return FRAME_ATTACHMENTS_TOO_LONG;
  if (!frame_is_utf8(rest, header->text_length)) return FRAME_NOT_UTF8;
  rules->seen |= UINT32_C(1) << header->type;
  return FRAME_OK;
}

void frame_write_header(uint8_t bytes[FRAME_HEADER_BYTES], uint8_t type, uint8_t flags, uint16_t attachment_count,
                        uint32_t text_length, uint32_t rest_length) {
  frame_put_u32(bytes, rest_length + FRAME_COUNTED_HEADER_BYTES);
  bytes[4] = type;
  bytes[5] = flags;
  bytes[6] = (uint8_t)attachment_count;
  bytes[7] = (uint8_t)(attachment_count >> 8);
  frame_put_u32(bytes + 8, text_length);
}

const char *frame_error_name(enum frame_error error) {
  switch (error) {
#define X(constant, name) \
  case constant:          \
    return name;
    FRAME_ERRORS(X)
#undef X
    case FRAME_OK:
      break;
  }
  return "ok";
}
