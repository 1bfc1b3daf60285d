/*
 * memcpy, memmove, memset, memcmp and strlen for freestanding builds (see mem.h).
 *
 * Contract of the C standard, nothing more. Blocks of up to 32 bytes are moved with two possibly overlapping loads
 * that both happen before the first store, longer ones in 64-byte steps, and long ones on x86-64 with `rep movsb`,
 * which every processor since 2013 runs at the speed of its caches. No loop here may be recognised as "a memcpy" by
 * the compiler, or the function would call itself: each loop holds an empty asm statement, which stops the idiom
 * recognition of gcc and clang alike and costs nothing.
 */
#include "mem.h"

#include <stdint.h>

typedef uint16_t __attribute__((may_alias, aligned(1))) any16;
typedef uint32_t __attribute__((may_alias, aligned(1))) any32;
typedef uint64_t __attribute__((may_alias, aligned(1))) any64;
typedef uint64_t __attribute__((vector_size(16), may_alias, aligned(1))) any128;

#define KEEP_LOOP(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

/* From here on `rep movsb`/`rep stosb` beats the vector loop (their start-up costs about 30 cycles). */
#define STRING_INSTRUCTION_BYTES 1024

/* Up to 32 bytes. All loads come before all stores, so overlapping blocks are fine. */
static void copy_short(uint8_t *to, const uint8_t *from, size_t length) {
  if (length >= 16) {
    const any128 head = *(const any128 *)from;
    const any128 tail = *(const any128 *)(from + length - 16);
    *(any128 *)to = head;
    *(any128 *)(to + length - 16) = tail;
  } else if (length >= 8) {
    const uint64_t head = *(const any64 *)from;
    const uint64_t tail = *(const any64 *)(from + length - 8);
    *(any64 *)to = head;
    *(any64 *)(to + length - 8) = tail;
  } else if (length >= 4) {
    const uint32_t head = *(const any32 *)from;
    const uint32_t tail = *(const any32 *)(from + length - 4);
    *(any32 *)to = head;
    *(any32 *)(to + length - 4) = tail;
  } else if (length >= 2) {
    const uint16_t head = *(const any16 *)from;
    const uint16_t tail = *(const any16 *)(from + length - 2);
    *(any16 *)to = head;
    *(any16 *)(to + length - 2) = tail;
  } else if (length == 1) {
    *to = *from;
  }
}

/* More than 32 bytes, low addresses first: right when `to` is below `from` or the blocks are apart. */
static void copy_up(uint8_t *to, const uint8_t *from, size_t length) {
  const any128 last0 = *(const any128 *)(from + length - 32);
  const any128 last1 = *(const any128 *)(from + length - 16);
  uint8_t *const end = to + length;
  while ((size_t)(end - to) > 64) {
    const any128 a = *(const any128 *)from;
    const any128 b = *(const any128 *)(from + 16);
    const any128 c = *(const any128 *)(from + 32);
    const any128 d = *(const any128 *)(from + 48);
    *(any128 *)to = a;
    *(any128 *)(to + 16) = b;
    *(any128 *)(to + 32) = c;
    *(any128 *)(to + 48) = d;
    to += 64;
    from += 64;
    KEEP_LOOP(to);
  }
  if ((size_t)(end - to) > 32) {
    const any128 a = *(const any128 *)from;
    const any128 b = *(const any128 *)(from + 16);
    *(any128 *)to = a;
    *(any128 *)(to + 16) = b;
  }
  *(any128 *)(end - 32) = last0;
  *(any128 *)(end - 16) = last1;
}

/* More than 32 bytes, high addresses first: right when `to` is above `from` and the blocks overlap. */
static void copy_down(uint8_t *to, const uint8_t *from, size_t length) {
  const any128 first0 = *(const any128 *)from;
  const any128 first1 = *(const any128 *)(from + 16);
  size_t left = length;
  while (left > 64) {
    const any128 a = *(const any128 *)(from + left - 16);
    const any128 b = *(const any128 *)(from + left - 32);
    const any128 c = *(const any128 *)(from + left - 48);
    const any128 d = *(const any128 *)(from + left - 64);
    *(any128 *)(to + left - 16) = a;
    *(any128 *)(to + left - 32) = b;
    *(any128 *)(to + left - 48) = c;
    *(any128 *)(to + left - 64) = d;
    left -= 64;
    KEEP_LOOP(left);
  }
  if (left > 32) {
    const any128 a = *(const any128 *)(from + left - 16);
    const any128 b = *(const any128 *)(from + left - 32);
    *(any128 *)(to + left - 16) = a;
    *(any128 *)(to + left - 32) = b;
  }
  *(any128 *)to = first0;
  *(any128 *)(to + 16) = first1;
}

void *memmove(void *to, const void *from, size_t length) {
  if (length <= 32) {
    copy_short(to, from, length);
  } else if ((uintptr_t)to - (uintptr_t)from < length) {
    /* `to` lies inside the source block (unsigned wrap makes this one comparison). */
    copy_down(to, from, length);
  } else {
    copy_up(to, from, length);
  }
  return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t length) {
  if (length <= 32) {
    copy_short(to, from, length);
    return to;
  }
#if defined(__x86_64__)
  if (length >= STRING_INSTRUCTION_BYTES) {
    void *destination = to;
    __asm__ volatile("rep movsb" : "+D"(destination), "+S"(from), "+c"(length) : : "memory");
    return to;
  }
#endif
  copy_up(to, from, length);
  return to;
}

void *memset(void *to, int byte, size_t length) {
  uint8_t *at = to;
  const uint64_t word = 0x0101010101010101u * (uint64_t)(uint8_t)byte;
  if (length < 8) {
    for (; length > 0; length--) {
      *at++ = (uint8_t)byte;
      KEEP_LOOP(at);
    }
    return to;
  }
#if defined(__x86_64__)
  if (length >= STRING_INSTRUCTION_BYTES) {
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(length) : "a"(byte) : "memory");
    return to;
  }
#endif
  uint8_t *const end = at + length;
  const any128 wide = {word, word};
  while ((size_t)(end - at) > 32) {
    *(any128 *)at = wide;
    *(any128 *)(at + 16) = wide;
    at += 32;
    KEEP_LOOP(at);
  }
  if ((size_t)(end - at) > 16) {
    *(any128 *)at = wide;
    at += 16;
  }
  if ((size_t)(end - at) > 8) {
    *(any64 *)at = word;
  }
  *(any64 *)(end - 8) = word;
  return to;
}

int memcmp(const void *left, const void *right, size_t length) {
  const uint8_t *a = left;
  const uint8_t *b = right;
  while (length >= 8 && *(const any64 *)a == *(const any64 *)b) {
    a += 8;
    b += 8;
    length -= 8;
    KEEP_LOOP(a);
  }
  for (; length > 0; length--, a++, b++) {
    if (*a != *b) return *a < *b ? -1 : 1;
    KEEP_LOOP(a);
  }
  return 0;
}

size_t strlen(const char *text) {
  const char *at = text;
  while (*at != '\0') {
    at++;
    KEEP_LOOP(at);
  }
  return (size_t)(at - text);
}
