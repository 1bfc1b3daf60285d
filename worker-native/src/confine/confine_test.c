/*
 * Unit tests of the pure parts of the confinement: SHA-256 by the published vectors, the readers of /proc texts on good
 * and hostile texts cut at every place, and the filter builder on tables that must not become a program. What the
 * built programs decide is tested in test/confinement, by an interpreter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "confine/bpf.h"
#include "confine/landlock.h"
#include "confine/proc_text.h"
#include "confine/sha256.h"
#include "seccomp_arm64.h"
#include "seccomp_x64.h"

static unsigned failures;

#define REQUIRE(condition)                                              \
  do {                                                                  \
    if (!(condition)) {                                                 \
      printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      if (++failures > 20) exit(1);                                     \
    }                                                                   \
  } while (0)

/* ── SHA-256 ── */

static bool hashes_to(const uint8_t *bytes, size_t length, const char *expected) {
  uint8_t hash[32];
  char text[65];
  sha256(bytes, length, hash);
  for (size_t i = 0; i < 32; i++) snprintf(text + 2 * i, 3, "%02x", hash[i]);
  return strcmp(text, expected) == 0;
}

static void matches_the_published_vectors(void) {
  const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  REQUIRE(hashes_to((const uint8_t *)"", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
  REQUIRE(hashes_to((const uint8_t *)"abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  REQUIRE(hashes_to((const uint8_t *)two_blocks, sizeof two_blocks - 1,
                    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
  uint8_t *million = malloc(1000000);
  REQUIRE(million != NULL);
  memset(million, 'a', 1000000);
  REQUIRE(hashes_to(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
  /* One byte below, at and above the length at which the padding needs a block of its own. */
  REQUIRE(hashes_to(million, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"));
  REQUIRE(hashes_to(million, 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"));
  REQUIRE(hashes_to(million, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"));
  free(million);
}

/* ── /proc/self/maps ── */

#define PROGRAM "55d0a0000000-55d0a0001000 r--p 00000000 fd:01 131 /opt/flowcell/worker\n"
#define CODE "55d0a0001000-55d0a0002000 r-xp 00001000 fd:01 131 /opt/flowcell/worker\n"
#define STACK "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n"
#define VDSO "7ffd000f0000-7ffd000f2000 r-xp 00000000 00:00 0                          [vdso]\n"

/* The verdict, which may not depend on how the text was cut into reads. */
static enum maps_verdict judge_maps(const char *text) {
  const size_t length = strlen(text);
  enum maps_verdict whole = MAPS_CLEAN;
  for (size_t cut = 0; cut <= length; cut++) {
    struct maps_reader reader;
    memset(&reader, 0, sizeof reader);
    maps_feed(&reader, text, cut);
    maps_feed(&reader, text + cut, length - cut);
    const enum maps_verdict verdict = maps_end(&reader);
    if (cut == 0) whole = verdict;
    REQUIRE(verdict == whole);
  }
  return whole;
}

static void judges_a_memory_map_by_its_worst_mapping(void) {
  REQUIRE(judge_maps(PROGRAM CODE STACK VDSO) == MAPS_CLEAN);
  REQUIRE(judge_maps(PROGRAM "1000-2000 rwxp 0 00:00 0\n" STACK) == MAPS_WRITABLE_EXECUTABLE);
  REQUIRE(judge_maps(PROGRAM "1000-2000 -wxp 0 00:00 0 [anon:x]\n" STACK) == MAPS_WRITABLE_EXECUTABLE);
  REQUIRE(judge_maps(PROGRAM "1000-2000 rw-s 0 00:01 7 /dev/zero (deleted)\n" STACK) == MAPS_SHARED);
  REQUIRE(judge_maps(PROGRAM "1000-2000 r-xs 0 00:01 7 /lib/x\n" STACK) == MAPS_SHARED);
  REQUIRE(judge_maps(CODE "1000-2000 rwxp 0 00:00 0     [stack]\n") == MAPS_EXECUTABLE_STACK);
  REQUIRE(judge_maps(CODE "1000-2000 r-xp 0 00:00 0     [stack]\n") == MAPS_EXECUTABLE_STACK);
  /* A file may be called like the stack, but its path starts with a slash. */
  REQUIRE(judge_maps("1000-2000 r-xp 0 fd:01 7 /tmp/[stack]\n" STACK) == MAPS_CLEAN);
  REQUIRE(judge_maps("1000-2000 rw-p 0 fd:01 7 /tmp/[stack]\n") == MAPS_MALFORMED);
}

static void never_calls_a_broken_memory_map_clean(void) {
  REQUIRE(judge_maps("") == MAPS_MALFORMED);
  REQUIRE(judge_maps(PROGRAM CODE) == MAPS_MALFORMED);
  REQUIRE(judge_maps("\n" STACK) == MAPS_MALFORMED);
  REQUIRE(judge_maps("Linux version 6.1\n") == MAPS_MALFORMED);
  REQUIRE(judge_maps("1000-2000 rw 0 00:00 0\n" STACK) == MAPS_MALFORMED);
  REQUIRE(judge_maps("1000-2000 rwxpp 0 00:00 0\n" STACK) == MAPS_MALFORMED);
  REQUIRE(judge_maps("1000-2000 rwyp 0 00:00 0\n" STACK) == MAPS_MALFORMED);
  REQUIRE(judge_maps("1000-2000 r--p\n" STACK) == MAPS_MALFORMED);
  const char whole[] = PROGRAM STACK;
  char cut[sizeof whole];
  strcpy(cut, whole);
  cut[sizeof whole - 2] = '\0'; /* without the last line's end */
  REQUIRE(judge_maps(cut) == MAPS_MALFORMED);
}

static void judges_lines_longer_than_its_buffer(void) {
  static char text[20000];
  memset(text, 'x', sizeof text - 1);
  const char head[] = "1000-2000 rw-s 0 fd:01 7 /";
  memcpy(text, head, sizeof head - 1);
  strcpy(text + 19000, "\n" STACK);
  struct maps_reader reader;
  memset(&reader, 0, sizeof reader);
  maps_feed(&reader, text, strlen(text));
  REQUIRE(maps_end(&reader) == MAPS_SHARED);
}

/* ── /proc/self/status ── */

static bool reads(const char *text, const char *key, uint64_t expected) {
  uint64_t value = 0;
  return status_number(text, strlen(text), key, &value) && value == expected;
}

static bool refuses(const char *text, const char *key) {
  uint64_t value = 0;
  return !status_number(text, strlen(text), key, &value);
}

static void reads_one_number_from_a_status_text(void) {
  const char status[] = "Name:\tThreads:\t7\nTracerPid:\t0\nThreads:\t1\nSigQ:\t0/95\nLast:\t9223372036854775807\n";
  REQUIRE(reads(status, "Threads", 1));
  REQUIRE(reads(status, "TracerPid", 0));
  REQUIRE(reads(status, "Last", 9223372036854775807u));
  REQUIRE(refuses(status, "SigQ"));
  REQUIRE(refuses(status, "Thread"));
  REQUIRE(refuses(status, "Missing"));
  REQUIRE(refuses("Threads:\t1\nThreads:\t1\n", "Threads"));
  REQUIRE(refuses("Threads:\t1", "Threads"));
  REQUIRE(refuses("Threads:\t\n", "Threads"));
  REQUIRE(refuses("Threads:\t-1\n", "Threads"));
  REQUIRE(refuses("Threads:\t1 2\n", "Threads"));
  REQUIRE(refuses("Threads:\t10000000000000000000\n", "Threads"));
  REQUIRE(refuses("Threads\n", "Threads"));
  REQUIRE(refuses("", "Threads"));
}

/* ── the filter builder ── */

static size_t build(struct seccomp_row row, uint32_t copies, size_t capacity) {
  static struct seccomp_row rows[64];
  static struct bpf_instruction program[BPF_INSTRUCTIONS_MAX];
  for (uint32_t i = 0; i < copies && i < 64; i++) rows[i] = row;
  const struct seccomp_table table = {.audit_arch = 1, .refuse_from = 0, .row_count = copies, .rows = rows};
  return bpf_build(&table, program, capacity);
}

static void builds_nothing_from_a_table_that_does_not_fit(void) {
  const struct seccomp_row plain = {.number = 1};
  REQUIRE(build(plain, 1, BPF_INSTRUCTIONS_MAX) == 7);
  REQUIRE(build(plain, 1, 7) == 7);
  REQUIRE(build(plain, 1, 6) == 0);
  REQUIRE(build(plain, 0, BPF_INSTRUCTIONS_MAX) == 5);
  const struct seccomp_row index = {.number = 1, .arg_count = 1, .args = {{.index = 6, .bits = 32, .count = 1}}};
  const struct seccomp_row bits = {.number = 1, .arg_count = 1, .args = {{.index = 0, .bits = 16, .count = 1}}};
  const struct seccomp_row none = {.number = 1, .arg_count = 1, .args = {{.index = 0, .bits = 32, .count = 0}}};
  const struct seccomp_row many = {.number = 1, .arg_count = 1, .args = {{.index = 0, .bits = 32, .count = 5}}};
  const struct seccomp_row args = {.number = 1, .arg_count = 3};
  REQUIRE(build(index, 1, BPF_INSTRUCTIONS_MAX) == 0);
  REQUIRE(build(bits, 1, BPF_INSTRUCTIONS_MAX) == 0);
  REQUIRE(build(none, 1, BPF_INSTRUCTIONS_MAX) == 0);
  REQUIRE(build(many, 1, BPF_INSTRUCTIONS_MAX) == 0);
  REQUIRE(build(args, 1, BPF_INSTRUCTIONS_MAX) == 0);
}

static void ends_every_path_with_a_return(void) {
  const struct seccomp_table *tables[] = {&SECCOMP_TABLE_X64, &SECCOMP_TABLE_ARM64};
  for (size_t t = 0; t < 2; t++) {
    struct bpf_instruction program[BPF_INSTRUCTIONS_MAX];
    const size_t length = bpf_build(tables[t], program, BPF_INSTRUCTIONS_MAX);
    REQUIRE(length > 0);
    REQUIRE(program[length - 1].code == 0x06 && program[length - 1].value == SECCOMP_RETURN_KILL_PROCESS);
    for (size_t i = 0; i < length; i++) {
      if (program[i].code == 0x06) continue;
      REQUIRE(i + 1 + program[i].jump_true < length && i + 1 + program[i].jump_false < length);
    }
  }
}

/* ── Landlock ── */

static void handles_every_right_of_each_abi_and_no_other(void) {
  static const struct {
    long abi;
    size_t size;
    uint64_t file_system, network, scoped;
  } expected[] = {
      {1, 8, 0x1fff, 0, 0},    {2, 8, 0x3fff, 0, 0},    {3, 8, 0x7fff, 0, 0},    {4, 16, 0x7fff, 3, 0},
      {5, 16, 0xffff, 3, 0},   {6, 24, 0xffff, 3, 3},   {7, 24, 0xffff, 3, 3},   {8, 24, 0xffff, 3, 3},
      {9, 24, 0x1ffff, 3, 3},  {10, 24, 0x1ffff, 15, 3}, {11, 24, 0x1ffff, 15, 3}, {99, 24, 0x1ffff, 15, 3},
  };
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    struct landlock_attributes rights;
    REQUIRE(landlock_rights(expected[i].abi, &rights) == expected[i].size);
    REQUIRE(rights.sets[LANDLOCK_FILE_SYSTEM] == expected[i].file_system);
    REQUIRE(rights.sets[LANDLOCK_NETWORK] == expected[i].network);
    REQUIRE(rights.sets[LANDLOCK_SCOPED] == expected[i].scoped);
  }
}

int main(void) {
  matches_the_published_vectors();
  judges_a_memory_map_by_its_worst_mapping();
  never_calls_a_broken_memory_map_clean();
  judges_lines_longer_than_its_buffer();
  reads_one_number_from_a_status_text();
  builds_nothing_from_a_table_that_does_not_fit();
  ends_every_path_with_a_return();
  handles_every_right_of_each_abi_and_no_other();
  if (failures == 0) puts("confine: all properties hold");
  return failures == 0 ? 0 : 1;
}
