/*
 * Bounded writers of decimal, hexadecimal and plain text into a caller's buffer.
 *
 * Called where the worker or a tool has to print without a libc. A writer never passes the end of the buffer: what
 * does not fit is dropped and `overflow` is set for good, so one check at the end suffices. The text is not
 * terminated with a zero byte.
 */
#ifndef FLOWCELL_BASE_TEXT_H
#define FLOWCELL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
  char *buffer;
  size_t capacity;
  size_t length;
  bool overflow;
};

struct text text_over(char *buffer, size_t capacity);
void text_bytes(struct text *out, const char *bytes, size_t length);
void text_string(struct text *out, const char *string);
void text_unsigned(struct text *out, uint64_t value);
void text_signed(struct text *out, int64_t value);
/* Lower case, exactly `digits` digits (1 to 16), higher ones cut off. */
void text_hex(struct text *out, uint64_t value, unsigned digits);
/* Two lower case digits for each byte. */
void text_hex_bytes(struct text *out, const uint8_t *bytes, size_t length);

/* Whether a zero-terminated string equals another. */
bool text_equal(const char *left, const char *right);
/* The part of `string` behind `prefix`, or NULL when it starts otherwise. */
const char *text_after(const char *string, const char *prefix);

#endif
