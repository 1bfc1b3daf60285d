/*
 * Readers of two /proc texts, /proc/self/maps and /proc/self/status, as bytes come in.
 *
 * Pure. Called by startup_linux.c on a stream from the kernel and by the hosted tests. Whatever bytes come, the
 * readers stay inside their own structures; a text that is not wholly of the expected form yields "malformed", never
 * a clean bill.
 */
#ifndef FLOWCELL_CONFINE_PROC_TEXT_H
#define FLOWCELL_CONFINE_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum maps_verdict {
  MAPS_CLEAN = 0,
  MAPS_MALFORMED,
  MAPS_WRITABLE_EXECUTABLE,
  MAPS_EXECUTABLE_STACK,
  MAPS_SHARED
};

/* The fields of a line and the first bytes of the name; the rest of a long path does not matter. */
enum { MAPS_LINE_BYTES = 160 };

struct maps_reader {
  char line[MAPS_LINE_BYTES];
  size_t length; /* of the current line, counted on past the buffer */
  bool stack_seen;
  enum maps_verdict verdict; /* the first that is not clean */
};

void maps_feed(struct maps_reader *reader, const char *bytes, size_t length);
/* At the end of the text. Clean only if the last line is complete and the stack was among the mappings. */
enum maps_verdict maps_end(const struct maps_reader *reader);

/*
 * The decimal value of a line "Key:<blanks>123<newline>" of a status text. False when there is no such line, more
 * than one, or anything but one number on it.
 */
bool status_number(const char *text, size_t length, const char *key, uint64_t *value);

#endif
