/* Readers of /proc/self/maps and /proc/self/status; the contract is in proc_text.h. */
#include "proc_text.h"

#include "../base/mem.h"

static bool is_one_of(char byte, char one, char other) { return byte == one || byte == other; }

/* The start of field `wanted` (0 is the first) of a blank-separated line, or NULL. */
static const char *field(const char *at, const char *end, unsigned wanted) {
  for (unsigned i = 0;; i++) {
    while (at < end && *at == ' ') at++;
    if (at == end) return NULL;
    if (i == wanted) return at;
    while (at < end && *at != ' ') at++;
  }
}

static bool names_stack(const char *name, const char *end) {
  static const char stack[] = "[stack]";
  return (size_t)(end - name) == sizeof stack - 1 && memcmp(name, stack, sizeof stack - 1) == 0;
}

/* "start-end rwxp offset device inode  name" */
static enum maps_verdict judge(struct maps_reader *reader) {
  const size_t kept = reader->length < MAPS_LINE_BYTES ? reader->length : MAPS_LINE_BYTES;
  const char *end = reader->line + kept;
  const char *mode = field(reader->line, end, 1);
  const char *inode = field(reader->line, end, 4);
  if (mode == NULL || inode == NULL || inode - mode < 5 || mode[4] != ' ') return MAPS_MALFORMED;
  if (!is_one_of(mode[0], 'r', '-') || !is_one_of(mode[1], 'w', '-') || !is_one_of(mode[2], 'x', '-') ||
      !is_one_of(mode[3], 'p', 's')) {
    return MAPS_MALFORMED;
  }
  const char *name = field(reader->line, end, 5);
  const bool stack = name != NULL && names_stack(name, end);
  if (stack) reader->stack_seen = true;
  if (stack && mode[2] == 'x') return MAPS_EXECUTABLE_STACK;
  if (mode[1] == 'w' && mode[2] == 'x') return MAPS_WRITABLE_EXECUTABLE;
  if (mode[3] == 's') return MAPS_SHARED;
  return MAPS_CLEAN;
}

void maps_feed(struct maps_reader *reader, const char *bytes, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (bytes[i] == '\n') {
      const enum maps_verdict verdict = judge(reader);
      if (reader->verdict == MAPS_CLEAN) reader->verdict = verdict;
      reader->length = 0;
      continue;
    }
    if (reader->length < MAPS_LINE_BYTES) reader->line[reader->length] = bytes[i];
    /* A line cannot be longer than a path and the fields; counting stops long before it could wrap. */
    if (reader->length < 2 * (size_t)MAPS_LINE_BYTES) reader->length++;
  }
}

enum maps_verdict maps_end(const struct maps_reader *reader) {
  if (reader->verdict != MAPS_CLEAN) return reader->verdict;
  return reader->length == 0 && reader->stack_seen ? MAPS_CLEAN : MAPS_MALFORMED;
}

/* The number on one line behind "Key:". */
static bool line_number(const char *at, const char *end, uint64_t *value) {
  while (at < end && is_one_of(*at, ' ', '\t')) at++;
  if (at == end || end - at > 19) return false; /* 19 digits always fit */
  uint64_t sum = 0;
  for (; at < end; at++) {
    if (*at < '0' || *at > '9') return false;
    sum = sum * 10 + (uint64_t)(*at - '0');
  }
  *value = sum;
  return true;
}

bool status_number(const char *text, size_t length, const char *key, uint64_t *value) {
  const size_t key_length = strlen(key);
  const char *const text_end = text + length;
  bool found = false;
  for (const char *line = text; line < text_end;) {
    const char *end = line;
    while (end < text_end && *end != '\n') end++;
    const size_t line_length = (size_t)(end - line);
    if (line_length > key_length && memcmp(line, key, key_length) == 0 && line[key_length] == ':') {
      /* Cut off by the end of the buffer: the number may go on. */
      if (found || end == text_end || !line_number(line + key_length + 1, end, value)) return false;
      found = true;
    }
    line = end < text_end ? end + 1 : end;
  }
  return found;
}
