/*
 * A fuzzer of frame.c: streams of frames that are valid or nearly so, mutated, judged under sanitizers.
 *
 *   wire-fuzz-test [SECONDS [SEED]]   one second and the clock's seed if not given; the seed is printed first
 *
 * Properties: no read outside the stream (every stream lies in memory of exactly its size); a frame that passes is
 * walked to its exact end; the same bytes give the same verdict twice; an unmutated frame within its limits passes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/frame.h"

static uint64_t state;
static uint64_t rounds;

/* splitmix64 */
static uint64_t draw(void) {
  uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint32_t below(uint32_t end) { return (uint32_t)(draw() % end); }

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "wire-fuzz-test: %s (round %" PRIu64 ")\n", what, rounds);
  abort();
}

static const struct message_row ROWS[MESSAGE_ROWS_COUNT] = MESSAGE_ROWS;

enum { STREAM_MAX = 4096 };

struct stream {
  uint8_t bytes[STREAM_MAX];
  size_t size;
};

static void append_text(struct stream *out, uint32_t length) {
  static const char *const pieces[] = {"{\"a\":1}", "\n", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "0"};
  uint32_t written = 0;
  while (written < length) {
    const char *piece = pieces[below(6)];
    size_t size = strlen(piece);
    if (size > length - written) {
      piece = "x";
      size = 1;
    }
    memcpy(out->bytes + out->size, piece, size);
    out->size += size;
    written += (uint32_t)size;
  }
}

/* A frame of `row` that every check passes in its phase. */
static void append_frame(struct stream *out, const struct message_row *row) {
  uint32_t text_length = below(row->text.fixed < 64 ? row->text.fixed + 1 : 65);
  uint32_t room = row->attachments_max - row->attachments_min;
  uint16_t count = (uint16_t)(row->attachments_min + (room == 0 ? 0 : below(3)));
  /* Refused and Welcome allow little: the smallest sizes that every row allows. */
  uint32_t each = count == 0 ? 0 : (row->attachments.fixed > 0 ? row->attachments.fixed : 24) / count;
  uint8_t flags = row->value == VALUE_NEVER ? 0 : (uint8_t)below(2);
  size_t begin = out->size;
  out->size += FRAME_HEADER_BYTES;
  append_text(out, text_length);
  for (uint32_t at = 0; at < count; at++) {
    uint32_t length = each == 0 ? 0 : below(each + 1);
    uint8_t prefix[4] = {(uint8_t)length, 0, 0, 0};
    memcpy(out->bytes + out->size, prefix, sizeof prefix);
    memset(out->bytes + out->size + 4, (int)below(256), length);
    out->size += sizeof prefix + length;
  }
  uint32_t rest = (uint32_t)(out->size - begin - FRAME_HEADER_BYTES);
  frame_write_header(out->bytes + begin, row->type, flags, count, text_length, rest);
}

static void mutate(struct stream *stream) {
  static const uint32_t interesting[] = {0, 1, 7, 8, 9, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
  uint32_t at = below((uint32_t)stream->size);
  switch (below(6)) {
    case 0:
      stream->bytes[at] ^= (uint8_t)(1u << below(8));
      break;
    case 1:
      stream->bytes[at] = (uint8_t)draw();
      break;
    case 2: { /* a length field of the first frame, or any four bytes */
      uint32_t value = interesting[below(12)];
      uint32_t place = below(2) == 0 ? (below(2) == 0 ? 0 : 8) : at;
      if (place + sizeof value <= stream->size) memcpy(stream->bytes + place, &value, sizeof value);
      break;
    }
    case 3:
      stream->size = at;
      break;
    case 4: /* drop bytes */
      memmove(stream->bytes + at, stream->bytes + at + 1, stream->size - at - 1);
      stream->size--;
      break;
    default: { /* a neighbouring value */
      stream->bytes[at] = (uint8_t)(stream->bytes[at] + (below(2) == 0 ? 1 : -1));
      break;
    }
  }
}

static enum frame_error judge(const uint8_t *bytes, size_t size, struct frame_rules rules) {
  while (size > 0) {
    struct frame_header header;
    enum frame_error error = frame_check_header(bytes, size, &rules, &header);
    if (error != FRAME_OK) return error;
    if (header.rest_length > size - FRAME_HEADER_BYTES) return FRAME_TRUNCATED;
    const uint8_t *rest = bytes + FRAME_HEADER_BYTES;
    error = frame_check_body(&header, rest, &rules);
    if (error != FRAME_OK) return error;
    struct frame_attachments attachments = frame_attachments_of(&header, rest);
    const uint8_t *part;
    uint32_t length;
    uint32_t count = 0;
    uint8_t sum = 0;
    while (frame_next_attachment(&attachments, &part, &length)) {
      for (uint32_t at = 0; at < length; at++) sum = (uint8_t)(sum + part[at]);
      count++;
    }
    if (count != header.attachment_count || attachments.at != attachments.end) fail("attachments do not end the frame");
    *(volatile uint8_t *)&sum = sum;
    bytes += FRAME_HEADER_BYTES + (size_t)header.rest_length;
    size -= FRAME_HEADER_BYTES + (size_t)header.rest_length;
  }
  return FRAME_OK;
}

static void one_round(void) {
  static const struct size_limits small = {8, 8, 8, 8, 64, 8};
  static const struct size_limits ceilings = SIZE_CEILINGS;
  static const uint8_t phases[] = {PHASE_STARTING, PHASE_IDLE, PHASE_RUNNING};
  struct stream stream = {.size = 0};
  const struct message_row *row = &ROWS[below(MESSAGE_ROWS_COUNT)];
  struct frame_rules rules = {.from_worker = row->from_worker, .phase = row->phases, .limits = ceilings};
  append_frame(&stream, row);
  uint32_t mutations = below(4);
  if (mutations == 0 && judge(stream.bytes, stream.size, rules) != FRAME_OK) fail("a valid frame is refused");
  uint32_t more = below(4);
  for (uint32_t at = 0; at < more; at++) append_frame(&stream, &ROWS[below(MESSAGE_ROWS_COUNT)]);
  for (uint32_t at = 0; at < mutations && stream.size > 1; at++) mutate(&stream);
  if (below(4) == 0) rules.limits = small;
  if (below(8) == 0) rules.phase = phases[below(3)];
  uint8_t *exact = malloc(stream.size + 1);
  if (exact == NULL) fail("no memory");
  memcpy(exact + 1, stream.bytes, stream.size); /* unaligned on purpose */
  enum frame_error first = judge(exact + 1, stream.size, rules);
  if (first != judge(stream.bytes, stream.size, rules)) fail("two verdicts on the same bytes");
  free(exact);
}

int main(int argc, char **argv) {
  long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
  printf("wire-fuzz-test: seed %" PRIu64 "\n", state);
  fflush(stdout);
  const clock_t end = clock() + seconds * CLOCKS_PER_SEC;
  while (clock() < end) {
    for (int burst = 0; burst < 1000; burst++, rounds++) one_round();
  }
  printf("wire-fuzz-test: %" PRIu64 " rounds\n", rounds);
  return 0;
}
