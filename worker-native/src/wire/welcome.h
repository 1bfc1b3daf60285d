/*
 * The writer of the Welcome header: the facts as the JSON object that packages/protocol/src/welcome.ts parses.
 *
 * Called by: the worker, once, before it reads anything. The fields and their order come from the generated table.
 */
#ifndef FLOWCELL_WIRE_WELCOME_H
#define FLOWCELL_WIRE_WELCOME_H

#include "base/text.h"
#include "protocol.h"

/* Appends the header; what does not fit sets `out->overflow`. build_id and fingerprint must be 64 hexadecimal digits. */
void welcome_write(struct text *out, const struct welcome *welcome);

#endif
