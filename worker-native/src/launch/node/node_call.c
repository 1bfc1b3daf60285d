/* Arguments and answers of calls from JavaScript. See node_call.h for what is kept true. */
#include "launch/node/node_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(struct node_call *call, uint32_t index, const char *wanted) {
  if (call->refused) return;
  call->refused = true;
  char message[96];
  snprintf(message, sizeof message, "flowcell: argument %u of the launcher library must be %s", index + 1, wanted);
  napi_throw_type_error(call->env, NULL, message);
}

struct node_call node_begin(napi_env env, napi_callback_info info) {
  struct node_call call = {.env = env};
  /* Node fills up with undefined, which is none of the types below. */
  size_t count = NODE_ARGUMENTS_MAX;
  if (napi_get_cb_info(env, info, &count, call.arguments, NULL, NULL) != NODE_OK) refuse(&call, 0, "there");
  return call;
}

static double whole(struct node_call *call, uint32_t index, double least, double most) {
  double value = 0;
  if (call->refused) return 0;
  if (napi_get_value_double(call->env, call->arguments[index], &value) != NODE_OK || !(value >= least && value <= most) ||
      value != (double)(int64_t)value) {
    refuse(call, index, "a whole number in range");
    return 0;
  }
  return value;
}

int32_t node_int32(struct node_call *call, uint32_t index) {
  return (int32_t)whole(call, index, INT32_MIN, INT32_MAX);
}

uint32_t node_uint32(struct node_call *call, uint32_t index) {
  return (uint32_t)whole(call, index, 0, UINT32_MAX);
}

static const char *text_of(struct node_call *call, uint32_t index, napi_value value) {
  size_t length = 0;
  if (call->refused) return NULL;
  if (call->texts == NODE_TEXTS_MAX || napi_get_value_string_utf8(call->env, value, NULL, 0, &length) != NODE_OK) {
    refuse(call, index, "a text");
    return NULL;
  }
  char *text = malloc(length + 1);
  if (text == NULL || napi_get_value_string_utf8(call->env, value, text, length + 1, &length) != NODE_OK ||
      strlen(text) != length) {
    free(text);
    refuse(call, index, "a text without zero bytes");
    return NULL;
  }
  call->text[call->texts++] = text;
  return text;
}

const char *node_text(struct node_call *call, uint32_t index) {
  return text_of(call, index, call->arguments[index]);
}

uint32_t node_texts(struct node_call *call, uint32_t index, const char **texts) {
  uint32_t count = 0;
  if (call->refused) return 0;
  if (napi_get_array_length(call->env, call->arguments[index], &count) != NODE_OK || count >= NODE_TEXTS_MAX) {
    refuse(call, index, "an array of a few texts");
    return 0;
  }
  for (uint32_t at = 0; at < count; at++) {
    napi_value element = NULL;
    if (napi_get_element(call->env, call->arguments[index], at, &element) != NODE_OK) refuse(call, index, "an array of texts");
    texts[at] = text_of(call, index, element);
  }
  return count;
}

void *node_array(struct node_call *call, uint32_t index, enum node_array type, uint32_t least, uint32_t *length) {
  int found = -1;
  size_t elements = 0;
  void *data = NULL;
  if (call->refused) return NULL;
  if (napi_get_typedarray_info(call->env, call->arguments[index], &found, &elements, &data, NULL, NULL) != NODE_OK ||
      found != (int)type || elements < least || elements > UINT32_MAX || data == NULL) {
    refuse(call, index, "a typed array of the right type and length");
    return NULL;
  }
  if (length != NULL) *length = (uint32_t)elements;
  return data;
}

bool node_ready(const struct node_call *call) {
  return !call->refused;
}

static void release(struct node_call *call) {
  while (call->texts > 0) free(call->text[--call->texts]);
}

napi_value node_end(struct node_call *call, int64_t answer) {
  napi_value value = NULL;
  release(call);
  napi_create_double(call->env, (double)answer, &value);
  return value;
}

napi_value node_end_text(struct node_call *call, const char *answer) {
  napi_value value = NULL;
  release(call);
  if (answer == NULL) {
    napi_get_null(call->env, &value);
  } else {
    napi_create_string_utf8(call->env, answer, NODE_AUTO_LENGTH, &value);
  }
  return value;
}

napi_value node_refused(struct node_call *call) {
  release(call);
  return NULL;
}

void node_export(napi_env env, napi_value exports, const char *name, napi_callback call) {
  napi_value function = NULL;
  /* What fails here is missing from the exports, where packages/native looks for it by name. */
  if (napi_create_function(env, name, NODE_AUTO_LENGTH, call, NULL, &function) == NODE_OK) {
    napi_set_named_property(env, exports, name, function);
  }
}
