/* Bounded text writers; the contract is in text.h. Pure. */
#include "text.h"

#include "mem.h"

struct text text_over(char *buffer, size_t capacity) {
  const struct text out = {.buffer = buffer, .capacity = capacity, .length = 0, .overflow = false};
  return out;
}

void text_bytes(struct text *out, const char *bytes, size_t length) {
  if (out->overflow || length > out->capacity - out->length) {
    out->overflow = true;
    return;
  }
  memcpy(out->buffer + out->length, bytes, length);
  out->length += length;
}

void text_string(struct text *out, const char *string) { text_bytes(out, string, strlen(string)); }

void text_unsigned(struct text *out, uint64_t value) {
  char digits[20]; /* 2^64 - 1 has twenty digits */
  size_t at = sizeof digits;
  do {
    digits[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  text_bytes(out, digits + at, sizeof digits - at);
}

void text_signed(struct text *out, int64_t value) {
  if (value < 0) {
    text_bytes(out, "-", 1);
    text_unsigned(out, 0 - (uint64_t)value);
  } else {
    text_unsigned(out, (uint64_t)value);
  }
}

void text_hex(struct text *out, uint64_t value, unsigned digits) {
  char buffer[16];
  if (digits > sizeof buffer) digits = sizeof buffer;
  for (unsigned at = digits; at > 0; at--) {
    buffer[at - 1] = "0123456789abcdef"[value & 15];
    value >>= 4;
  }
  text_bytes(out, buffer, digits);
}

void text_hex_bytes(struct text *out, const uint8_t *bytes, size_t length) {
  for (size_t at = 0; at < length; at++) text_hex(out, bytes[at], 2);
}

bool text_equal(const char *left, const char *right) {
  while (*left != '\0' && *left == *right) {
    left++;
    right++;
  }
  return *left == *right;
}

const char *text_after(const char *string, const char *prefix) {
  while (*prefix != '\0') {
    if (*string != *prefix) return NULL;
    string++;
    prefix++;
  }
  return string;
}
