/*
 * files.h for JavaScript. packages/native/src/files-library.ts declares the types of what is exported here.
 *
 * Called by: JavaScript on any thread; see node_call.h for what each call establishes. What a name may be, files.h says.
 */
#include "launch/node/node_files.h"

#include "launch/files.h"
#include "launch/node/node_call.h"

enum { FACT_WORDS = sizeof(struct files_facts) / sizeof(uint64_t) };

static napi_value call_open_host(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  const char *path = node_text(&call, 0);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, files_open_host(path));
}

/* The four that take a folder and a text. */
static napi_value call_with_name(napi_env env, napi_callback_info info, int32_t (*function)(int32_t, const char *)) {
  struct node_call call = node_begin(env, info);
  int32_t folder = node_int32(&call, 0);
  const char *name = node_text(&call, 1);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, function(folder, name));
}

static napi_value call_resolve(napi_env env, napi_callback_info info) {
  return call_with_name(env, info, files_resolve);
}

static napi_value call_step(napi_env env, napi_callback_info info) {
  return call_with_name(env, info, files_step);
}

static napi_value call_make_folder(napi_env env, napi_callback_info info) {
  return call_with_name(env, info, files_make_folder);
}

static napi_value call_remove(napi_env env, napi_callback_info info) {
  return call_with_name(env, info, files_remove);
}

/* The three that take a descriptor alone. */
static napi_value call_with_folder(napi_env env, napi_callback_info info, int32_t (*function)(int32_t)) {
  struct node_call call = node_begin(env, info);
  int32_t folder = node_int32(&call, 0);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, function(folder));
}

static napi_value call_same(napi_env env, napi_callback_info info) {
  return call_with_folder(env, info, files_same);
}

static napi_value call_above(napi_env env, napi_callback_info info) {
  return call_with_folder(env, info, files_above);
}

static napi_value call_reopen_folder(napi_env env, napi_callback_info info) {
  return call_with_folder(env, info, files_reopen_folder);
}

static napi_value call_facts(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  int32_t handle = node_int32(&call, 0);
  struct files_facts *out = node_array(&call, 1, NODE_BIGUINT64, FACT_WORDS, NULL);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, files_facts(handle, out));
}

static napi_value call_link_text(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  uint32_t capacity = 0;
  int32_t handle = node_int32(&call, 0);
  char *out = node_array(&call, 1, NODE_UINT8, 1, &capacity);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, files_link_text(handle, out, capacity));
}

static napi_value call_still_named(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  int32_t handle = node_int32(&call, 0);
  int32_t folder = node_int32(&call, 1);
  const char *name = node_text(&call, 2);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, files_still_named(handle, folder, name));
}

static napi_value call_reopen(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  int32_t handle = node_int32(&call, 0);
  int32_t mode = node_int32(&call, 1);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, files_reopen(handle, mode));
}

static napi_value call_create(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  int32_t folder = node_int32(&call, 0);
  const char *name = node_text(&call, 1);
  uint32_t mode = node_uint32(&call, 2);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, files_create(folder, name, mode));
}

static napi_value call_rename(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  int32_t folder = node_int32(&call, 0);
  const char *from = node_text(&call, 1);
  const char *to = node_text(&call, 2);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, files_rename(folder, from, to));
}

static napi_value call_list(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  uint32_t capacity = 0;
  int32_t folder = node_int32(&call, 0);
  uint8_t *out = node_array(&call, 1, NODE_UINT8, FILES_LIST_MIN, &capacity);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, files_list(folder, out, capacity));
}

void node_export_files(napi_env env, napi_value exports) {
  node_export(env, exports, "openHost", call_open_host);
  node_export(env, exports, "resolve", call_resolve);
  node_export(env, exports, "step", call_step);
  node_export(env, exports, "same", call_same);
  node_export(env, exports, "above", call_above);
  node_export(env, exports, "facts", call_facts);
  node_export(env, exports, "linkText", call_link_text);
  node_export(env, exports, "stillNamed", call_still_named);
  node_export(env, exports, "reopen", call_reopen);
  node_export(env, exports, "reopenFolder", call_reopen_folder);
  node_export(env, exports, "create", call_create);
  node_export(env, exports, "makeFolder", call_make_folder);
  node_export(env, exports, "rename", call_rename);
  node_export(env, exports, "remove", call_remove);
  node_export(env, exports, "list", call_list);
}
