/*
 * Tests of frame.c and welcome.c, hosted.
 *
 *   wire-test             runs the unit tests; the exit code says whether all is well
 *   wire-test --verdicts  reads records from standard input and prints what C makes of each: the vectors and the
 *                         differential fuzzer compare that with TypeScript's verdict
 *   wire-test --welcome   prints a Welcome header of fixed facts, which TypeScript parses
 *
 * A record, integers little-endian: u8 from_worker, u8 phase, u16 0, u32 × 6 limits in the order of struct size_limits,
 * u32 length, then that many bytes of a stream. The verdict: a line "frame TYPE FLAGS TEXTLENGTH TEXTHASH COUNT HASH" for
 * each frame, then the error's name or "ok". Hashes are FNV-1a; that of attachments goes over their lengths too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"
#include "wire/welcome.h"

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      failures++;                                                           \
    }                                                                       \
  } while (0)

static int failures;

static const struct size_limits CEILINGS = SIZE_CEILINGS;

static uint32_t fnv(uint32_t hash, const uint8_t *bytes, size_t size) {
  for (size_t at = 0; at < size; at++) hash = (hash ^ bytes[at]) * UINT32_C(16777619);
  return hash;
}

#define FNV_START UINT32_C(2166136261)

/* ── verdicts ───────────────────────────────────────────────────────────────────────────────────────────────── */

static void print_frame(const struct frame_header *header, const uint8_t *rest) {
  uint32_t text = fnv(FNV_START, rest, header->text_length);
  uint32_t hash = FNV_START;
  struct frame_attachments attachments = frame_attachments_of(header, rest);
  const uint8_t *bytes;
  uint32_t length;
  while (frame_next_attachment(&attachments, &bytes, &length)) {
    uint8_t prefix[4] = {(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16), (uint8_t)(length >> 24)};
    hash = fnv(fnv(hash, prefix, sizeof prefix), bytes, length);
  }
  printf("frame %u %u %" PRIu32 " %08" PRIx32 " %u %08" PRIx32 "\n", header->type, header->flags, header->text_length,
         text, header->attachment_count, hash);
}

static enum frame_error judge(const uint8_t *stream, size_t size, struct frame_rules *rules) {
  while (size > 0) {
    struct frame_header header;
    enum frame_error error = frame_check_header(stream, size, rules, &header);
    if (error != FRAME_OK) return error;
    if (header.rest_length > size - FRAME_HEADER_BYTES) return FRAME_TRUNCATED;
    error = frame_check_body(&header, stream + FRAME_HEADER_BYTES, rules);
    if (error != FRAME_OK) return error;
    print_frame(&header, stream + FRAME_HEADER_BYTES);
    stream += FRAME_HEADER_BYTES + (size_t)header.rest_length;
    size -= FRAME_HEADER_BYTES + (size_t)header.rest_length;
  }
  return FRAME_OK;
}

static int verdicts(void) {
  struct {
    uint8_t from_worker;
    uint8_t phase;
    uint16_t zero;
    struct size_limits limits;
    uint32_t length;
  } record;
  _Static_assert(sizeof record == 32, "layout of a record");
  while (fread(&record, sizeof record, 1, stdin) == 1) {
    struct frame_rules rules = {.from_worker = record.from_worker != 0, .phase = record.phase, .limits = record.limits};
    /* Exactly as long as the stream, so that the sanitizer sees a read past its end. */
    uint8_t *stream = malloc(record.length);
    if (stream == NULL && record.length > 0) return 1;
    if (record.length > 0 && fread(stream, record.length, 1, stdin) != 1) return 1;
    puts(frame_error_name(judge(stream, record.length, &rules)));
    free(stream);
  }
  return fflush(stdout) == 0 ? 0 : 1;
}

/* ── unit tests ─────────────────────────────────────────────────────────────────────────────────────────────── */

static size_t frame_of(uint8_t *out, uint8_t type, uint8_t flags, uint16_t count, const char *text, const uint8_t *parts,
                       size_t parts_size) {
  size_t text_length = strlen(text);
  frame_write_header(out, type, flags, count, (uint32_t)text_length, (uint32_t)(text_length + parts_size));
  memcpy(out + FRAME_HEADER_BYTES, text, text_length);
  if (parts_size > 0) memcpy(out + FRAME_HEADER_BYTES + text_length, parts, parts_size);
  return FRAME_HEADER_BYTES + text_length + parts_size;
}

static void what_is_written_is_read_back(void) {
  static const uint8_t parts[] = {3, 0, 0, 0, 7, 8, 9, 0, 0, 0, 0};
  uint8_t stream[128];
  size_t size = frame_of(stream, MESSAGE_HOST_CALL, FRAME_FLAG_DEVALUE, 2, "{}\n[]", parts, sizeof parts);
  struct frame_rules rules = {.from_worker = true, .phase = PHASE_RUNNING, .limits = CEILINGS};
  struct frame_header header;
  CHECK(frame_check_header(stream, size, &rules, &header) == FRAME_OK);
  CHECK(header.type == MESSAGE_HOST_CALL && header.flags == FRAME_FLAG_DEVALUE && header.attachment_count == 2);
  CHECK(header.text_length == 5 && header.rest_length == 5 + sizeof parts);
  CHECK(frame_check_body(&header, stream + FRAME_HEADER_BYTES, &rules) == FRAME_OK);
  CHECK(rules.seen == UINT32_C(1) << MESSAGE_HOST_CALL);
  struct frame_attachments attachments = frame_attachments_of(&header, stream + FRAME_HEADER_BYTES);
  const uint8_t *bytes = NULL;
  uint32_t length = 99;
  CHECK(frame_next_attachment(&attachments, &bytes, &length) && length == 3 && memcmp(bytes, "\7\10\11", 3) == 0);
  CHECK(frame_next_attachment(&attachments, &bytes, &length) && length == 0);
  CHECK(!frame_next_attachment(&attachments, &bytes, &length));
}

static void the_worker_judges_the_parents_frames(void) {
  uint8_t stream[64];
  struct frame_header header;
  size_t size = frame_of(stream, MESSAGE_DELIVER, 0, 0, "{}", NULL, 0);
  CHECK(frame_parse_header(stream, size, &header) == FRAME_OK && header.rest_length == 2);
  CHECK(frame_parse_header(stream, FRAME_HEADER_BYTES - 1, &header) == FRAME_TRUNCATED);
  frame_of(stream, MESSAGE_FINISHED, 0, 0, "{}", NULL, 0);
  CHECK(frame_parse_header(stream, size, &header) == FRAME_WRONG_SENDER);
  frame_of(stream, MESSAGE_ACTIVATE, 0, 0, "{}\n1", NULL, 0);
  CHECK(frame_parse_header(stream, size, &header) == FRAME_MISSING_ATTACHMENTS);
  stream[0] = 7;
  CHECK(frame_parse_header(stream, size, &header) == FRAME_SHORT_LENGTH);
}

static void text_is_judged_as_utf8(void) {
  static const struct {
    const char *text;
    bool good;
  } cases[] = {
      {"", true},
      {"z", true},
      {"\xc2\x80", true},
      {"\xdf\xbf", true},
      {"\xe0\xa0\x80", true},
      {"\xed\x9f\xbf", true},
      {"\xee\x80\x80", true},
      {"\xef\xbf\xbf", true},
      {"\xf0\x90\x80\x80", true},
      {"\xf4\x8f\xbf\xbf", true},
      {"\x80", false},
      {"\xc0\x80", false},
      {"\xc1\xbf", false},
      {"\xc2", false},
      {"\xc2\x41", false},
      {"\xe0\x9f\xbf", false},
      {"\xe1\x80", false},
      {"\xed\xa0\x80", false},
      {"\xf0\x8f\xbf\xbf", false},
      {"\xf0\x90\x80", false},
      {"\xf4\x90\x80\x80", false},
      {"\xf5\x80\x80\x80", false},
      {"\xff", false},
  };
  for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
    uint8_t stream[64];
    struct frame_header header;
    struct frame_rules rules = {.from_worker = true, .phase = PHASE_RUNNING, .limits = CEILINGS};
    size_t size = frame_of(stream, MESSAGE_CANCEL_CALL, 0, 0, cases[at].text, NULL, 0);
    CHECK(frame_check_header(stream, size, &rules, &header) == FRAME_OK);
    enum frame_error error = frame_check_body(&header, stream + FRAME_HEADER_BYTES, &rules);
    CHECK(error == (cases[at].good ? FRAME_OK : FRAME_NOT_UTF8));
  }
}

static void every_error_has_a_name(void) {
  for (int error = FRAME_OK + 1; error <= FRAME_BAD_STRUCT; error++) {
    const char *name = frame_error_name((enum frame_error)error);
    CHECK(strcmp(name, "ok") != 0 && strlen(name) > 3);
  }
  CHECK(strcmp(frame_error_name(FRAME_OK), "ok") == 0);
}

static const struct welcome FACTS = {
    .build_id = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    .fingerprint = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    .seccomp_sha256 = {0xab, 0xcd},
    .seccomp_length = 57,
    .seccomp_tsync = true,
    .landlock_abi = 7,
    .no_new_privs = true,
    .threads = 1,
    .uid = 65534,
    .gid = 65534,
    .cap_ambient = UINT64_C(0x8000000000000001),
    .limit_core = 0,
    .limit_data = UINT64_C(1) << 40,
    .limit_cpu = UINT64_MAX,
    .limit_nofile = 3,
    .descriptors = 7,
    .spec_store_bypass = UINT32_MAX,
};

static void welcome_fits_or_says_so(void) {
  char header[MESSAGE_WELCOME_BYTES_MAX];
  struct text text = text_over(header, sizeof header);
  welcome_write(&text, &FACTS);
  CHECK(!text.overflow && text.length > 500 && header[0] == '{' && header[text.length - 1] == '}');
  struct text narrow = text_over(header, text.length - 1);
  welcome_write(&narrow, &FACTS);
  CHECK(narrow.overflow);
}

static int print_welcome(void) {
  char header[MESSAGE_WELCOME_BYTES_MAX];
  struct text text = text_over(header, sizeof header);
  welcome_write(&text, &FACTS);
  return fwrite(header, text.length, 1, stdout) == 1 ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--verdicts") == 0) return verdicts();
  if (argc == 2 && strcmp(argv[1], "--welcome") == 0) return print_welcome();
  if (argc != 1) return 64;
  what_is_written_is_read_back();
  the_worker_judges_the_parents_frames();
  text_is_judged_as_utf8();
  every_error_has_a_name();
  welcome_fits_or_says_so();
  return failures == 0 ? 0 : 1;
}
