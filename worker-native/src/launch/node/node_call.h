/*
 * One call from JavaScript into the launcher library: its arguments in C's types, its answer as a value.
 *
 * Called by: node_launch.c and node_files.c, on whichever thread JavaScript runs; nothing here has state.
 * Trust: packages/native is the only caller, and it is typed; a program may still get hold of the functions.
 * Kept true: an argument of another type, a number that is no whole one of the C type, a text with a zero byte and an array
 * that is too short are a TypeError, and then nothing is called. A number never wraps into another descriptor.
 *
 * Take every argument, then ask node_ready; node_end frees what was taken.
 */
#ifndef FLOWCELL_LAUNCH_NODE_CALL_H
#define FLOWCELL_LAUNCH_NODE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/node/node_api.h"

enum { NODE_ARGUMENTS_MAX = 4, NODE_TEXTS_MAX = 16 };

struct node_call {
  napi_env env;
  napi_value arguments[NODE_ARGUMENTS_MAX];
  bool refused; /* an exception is pending */
  uint32_t texts;
  char *text[NODE_TEXTS_MAX];
};

struct node_call node_begin(napi_env env, napi_callback_info info);
int32_t node_int32(struct node_call *call, uint32_t index);
uint32_t node_uint32(struct node_call *call, uint32_t index);

/* Valid until node_end. NULL when it was refused. */
const char *node_text(struct node_call *call, uint32_t index);

/* The texts of an array, at most NODE_TEXTS_MAX - 1 of them; returns how many. */
uint32_t node_texts(struct node_call *call, uint32_t index, const char **texts);

/* The elements of a typed array of that type with at least so many; `length` may be NULL. */
void *node_array(struct node_call *call, uint32_t index, enum node_array type, uint32_t least, uint32_t *length);

bool node_ready(const struct node_call *call);

/* The answer: a number, which every caller here can hold exactly. */
napi_value node_end(struct node_call *call, int64_t answer);
/* A text, or null for NULL. */
napi_value node_end_text(struct node_call *call, const char *answer);
/* After a refusal. */
napi_value node_refused(struct node_call *call);

void node_export(napi_env env, napi_value exports, const char *name, napi_callback call);

#endif
