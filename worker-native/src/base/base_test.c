/*
 * Unit tests of base/: the memory functions against byte loops, the rounding functions against libm, the text writers
 * against printf. Hosted, also under the sanitizers.
 *
 * mem.c and math.c are included under other names, so that libc's and libm's stay beside them as the reference.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define memcpy own_memcpy
#define memmove own_memmove
#define memset own_memset
#define memcmp own_memcmp
#define strlen own_strlen
#define FLOWCELL_BASE_MEM_H /* its declarations would carry the libc names through the defines */
#include <stddef.h>
void *own_memcpy(void *restrict to, const void *restrict from, size_t length);
void *own_memmove(void *to, const void *from, size_t length);
void *own_memset(void *to, int byte, size_t length);
int own_memcmp(const void *left, const void *right, size_t length);
size_t own_strlen(const char *text);
#include "mem.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef strlen

#define floor own_floor
#define ceil own_ceil
#define trunc own_trunc
#define rint own_rint
#define nearbyint own_nearbyint
#define sqrt own_sqrt
#define fabs own_fabs
#define copysign own_copysign
#define floorf own_floorf
#define ceilf own_ceilf
#define truncf own_truncf
#define rintf own_rintf
#define nearbyintf own_nearbyintf
#define sqrtf own_sqrtf
#define fabsf own_fabsf
#define copysignf own_copysignf
#include "math.c"
#undef floor
#undef ceil
#undef trunc
#undef rint
#undef nearbyint
#undef sqrt
#undef fabs
#undef copysign
#undef floorf
#undef ceilf
#undef truncf
#undef rintf
#undef nearbyintf
#undef sqrtf
#undef fabsf
#undef copysignf

#include "text.h"

static unsigned failures;

#define REQUIRE(condition)                                              \
  do {                                                                  \
    if (!(condition)) {                                                 \
      printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      if (++failures > 20) exit(1);                                     \
    }                                                                   \
  } while (0)

/* xorshift64*: the same values in every run. */
static uint64_t random_state = 0x9e3779b97f4a7c15u;
static uint64_t random_word(void) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 0x2545f4914f6cdd1du;
}

/* ── memory ── */

enum { SPACE = 5000, EDGE = 96 };
static uint8_t space[SPACE], expected[SPACE], other[SPACE];

static void fill(void) {
  for (size_t i = 0; i < SPACE; i++) expected[i] = space[i] = other[i] = (uint8_t)random_word();
}

static const size_t lengths[] = {0,  1,  2,  3,  4,  5,  7,  8,   9,   15,  16,  17,   31,   32,  33,
                                 47, 48, 63, 64, 65, 95, 96, 127, 128, 129, 500, 1023, 1024, 1025, 4000};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* Byte by byte, in the order that keeps an overlapping source intact. */
static void reference_move(uint8_t *base, size_t to, size_t from, size_t length) {
  uint8_t copy[SPACE];
  for (size_t i = 0; i < length; i++) copy[i] = base[from + i];
  for (size_t i = 0; i < length; i++) base[to + i] = copy[i];
}

static void moves_overlapping_blocks_like_a_byte_loop(void) {
  for (size_t l = 0; l < LENGTHS; l++) {
    for (size_t from = 0; from < EDGE; from += 7) {
      for (size_t to = 0; to < EDGE; to += 5) {
        fill();
        reference_move(expected, to, from, lengths[l]);
        REQUIRE(own_memmove(space + to, space + from, lengths[l]) == space + to);
        REQUIRE(memcmp(space, expected, SPACE) == 0);
      }
    }
  }
}

static void copies_and_fills_exactly_the_bytes_asked_for(void) {
  for (size_t l = 0; l < LENGTHS; l++) {
    for (size_t at = 0; at < 40; at++) {
      fill();
      for (size_t i = 0; i < lengths[l]; i++) expected[at + i] = other[3 + i];
      REQUIRE(own_memcpy(space + at, other + 3, lengths[l]) == space + at);
      REQUIRE(memcmp(space, expected, SPACE) == 0);
      fill();
      for (size_t i = 0; i < lengths[l]; i++) expected[at + i] = 0xa7;
      REQUIRE(own_memset(space + at, 0x3a7, lengths[l]) == space + at);
      REQUIRE(memcmp(space, expected, SPACE) == 0);
    }
  }
}

static int sign(int value) { return (value > 0) - (value < 0); }

static void compares_by_the_first_different_byte(void) {
  for (size_t l = 0; l < LENGTHS; l++) {
    fill();
    REQUIRE(own_memcmp(space, other, lengths[l]) == 0);
    for (size_t at = 0; at < lengths[l]; at += 1 + lengths[l] / 40) {
      const uint8_t old = space[at];
      space[at] = (uint8_t)random_word();
      REQUIRE(sign(own_memcmp(space, other, lengths[l])) == sign(memcmp(space, other, lengths[l])));
      REQUIRE(sign(own_memcmp(other, space, lengths[l])) == sign(memcmp(other, space, lengths[l])));
      space[at] = old;
    }
  }
  REQUIRE(own_strlen("") == 0 && own_strlen("a") == 1 && own_strlen("twelve bytes") == 12);
}

/* ── mathematics ── */

/* Equal bits; of NaNs only that both are quiet NaNs. */
static bool same64(double own, double reference) {
  union word64 a = {.value = own}, b = {.value = reference};
  const bool nan = own != own;
  if (nan || reference != reference) return nan && reference != reference && (a.bits & UINT64_C(1) << 51) != 0;
  return a.bits == b.bits;
}

static bool same32(float own, float reference) {
  union word32 a = {.value = own}, b = {.value = reference};
  const bool nan = own != own;
  if (nan || reference != reference) return nan && reference != reference && (a.bits & 1u << 22) != 0;
  return a.bits == b.bits;
}

static void check64(uint64_t bits) {
  const union word64 word = {.bits = bits};
  const double x = word.value;
  REQUIRE(same64(own_floor(x), floor(x)));
  REQUIRE(same64(own_ceil(x), ceil(x)));
  REQUIRE(same64(own_trunc(x), trunc(x)));
  REQUIRE(same64(own_rint(x), rint(x)));
  REQUIRE(same64(own_nearbyint(x), nearbyint(x)));
  REQUIRE(same64(own_sqrt(x), sqrt(x)));
  const union word64 magnitude = {.value = own_fabs(x)}, flipped = {.value = own_copysign(x, -1.0)};
  REQUIRE(magnitude.bits == (bits & ~SIGN64));
  REQUIRE(flipped.bits == (bits | SIGN64));
}

static void check32(uint32_t bits) {
  const union word32 word = {.bits = bits};
  const float x = word.value;
  REQUIRE(same32(own_floorf(x), floorf(x)));
  REQUIRE(same32(own_ceilf(x), ceilf(x)));
  REQUIRE(same32(own_truncf(x), truncf(x)));
  REQUIRE(same32(own_rintf(x), rintf(x)));
  REQUIRE(same32(own_nearbyintf(x), nearbyintf(x)));
  REQUIRE(same32(own_sqrtf(x), sqrtf(x)));
  const union word32 magnitude = {.value = own_fabsf(x)}, flipped = {.value = own_copysignf(x, -1.0f)};
  REQUIRE(magnitude.bits == (bits & ~SIGN32));
  REQUIRE(flipped.bits == (bits | SIGN32));
}

/* Every exponent with the mantissas on whose carries and ties rounding turns, both signs. */
static void rounds_like_libm_at_every_exponent(void) {
  for (uint64_t exponent = 0; exponent < 0x800; exponent++) {
    for (unsigned bit = 0; bit <= 52; bit++) {
      const uint64_t one = UINT64_C(1) << bit & 0xfffffffffffffu;
      const uint64_t mantissas[] = {one, (one - 1) & 0xfffffffffffffu, (0 - one) & 0xfffffffffffffu,
                                    (one | one >> 1), (one | 1) & 0xfffffffffffffu};
      for (size_t i = 0; i < sizeof mantissas / sizeof mantissas[0]; i++) {
        check64(exponent << 52 | mantissas[i]);
        check64(SIGN64 | exponent << 52 | mantissas[i]);
      }
    }
  }
  for (uint32_t exponent = 0; exponent < 0x100; exponent++) {
    for (unsigned bit = 0; bit <= 23; bit++) {
      const uint32_t one = 1u << bit & 0x7fffffu;
      const uint32_t mantissas[] = {one, (one - 1) & 0x7fffffu, (0 - one) & 0x7fffffu, one | one >> 1};
      for (size_t i = 0; i < sizeof mantissas / sizeof mantissas[0]; i++) {
        check32(exponent << 23 | mantissas[i]);
        check32(SIGN32 | exponent << 23 | mantissas[i]);
      }
    }
  }
}

static void rounds_like_libm_at_random(void) {
  for (unsigned i = 0; i < 300000; i++) {
    check64(random_word());
    check32((uint32_t)(random_word() >> 32));
    /* Small numbers with fractions, where the work is. */
    union word64 near = {.value = (double)(int64_t)(random_word() >> 40) / 256.0 - 32768.0};
    check64(near.bits);
  }
}

/* ── text ── */

static void writes_numbers_like_printf(void) {
  const uint64_t values[] = {0,           1,         9,         10, 99, 100, 4294967295u,
                             4294967296u, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    char own[64], reference[64];
    struct text out = text_over(own, sizeof own);
    text_unsigned(&out, values[i]);
    text_string(&out, " ");
    text_signed(&out, (int64_t)values[i]);
    text_string(&out, " ");
    text_hex(&out, values[i], 16);
    snprintf(reference, sizeof reference, "%llu %lld %016llx", (unsigned long long)values[i], (long long)values[i],
             (unsigned long long)values[i]);
    REQUIRE(!out.overflow && out.length == strlen(reference) && memcmp(own, reference, out.length) == 0);
  }
}

static void never_writes_past_the_buffer(void) {
  for (size_t capacity = 0; capacity < 24; capacity++) {
    char buffer[32];
    memset(buffer, '#', sizeof buffer);
    struct text out = text_over(buffer, capacity);
    text_string(&out, "0123456789");
    text_signed(&out, -1234567890);
    const bool fits = capacity >= 21;
    REQUIRE(out.overflow == !fits);
    /* Once something did not fit, nothing else is added, however short. */
    const size_t length = out.length;
    text_bytes(&out, "", 0);
    if (out.overflow) text_string(&out, "x");
    REQUIRE(out.length == length);
    for (size_t i = capacity; i < sizeof buffer; i++) REQUIRE(buffer[i] == '#');
  }
}

static void finds_prefixes_and_equal_strings(void) {
  REQUIRE(text_equal("", "") && text_equal("ab", "ab"));
  REQUIRE(!text_equal("ab", "a") && !text_equal("a", "ab") && !text_equal("ab", "ac"));
  REQUIRE(text_after("--scratch=/x", "--scratch=") != NULL && text_equal(text_after("ab", "a"), "b"));
  REQUIRE(text_after("a", "ab") == NULL && text_after("", "a") == NULL);
}

int main(void) {
  moves_overlapping_blocks_like_a_byte_loop();
  copies_and_fills_exactly_the_bytes_asked_for();
  compares_by_the_first_different_byte();
  rounds_like_libm_at_every_exponent();
  rounds_like_libm_at_random();
  writes_numbers_like_printf();
  never_writes_past_the_buffer();
  finds_prefixes_and_equal_strings();
  if (failures == 0) puts("base: all properties hold");
  return failures == 0 ? 0 : 1;
}
