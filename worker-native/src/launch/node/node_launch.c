/*
 * launch.h for JavaScript, and the entry by which Node loads the library. packages/native/src/library.ts declares the
 * types of what is exported here; structures cross as typed arrays in the order of launch.h.
 *
 * Called by: Node, once per thread that loads the library; see node_call.h for what each call establishes.
 */
#include "launch/launch.h"
#include "launch/node/node_call.h"
#include "launch/node/node_files.h"

enum {
  LIMIT_WORDS = sizeof(struct launch_limits) / sizeof(uint64_t),
  RESULT_WORDS = sizeof(struct launch_result) / sizeof(int32_t),
  EXIT_WORDS = sizeof(struct launch_exit) / sizeof(int64_t),
  FACT_WORDS = sizeof(struct host_facts) / sizeof(int64_t),
};

static napi_value call_launch_worker(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  const char *arguments[NODE_TEXTS_MAX];
  const char *path = node_text(&call, 0);
  uint32_t count = node_texts(&call, 1, arguments);
  struct launch_limits *limits = node_array(&call, 2, NODE_BIGUINT64, LIMIT_WORDS, NULL);
  struct launch_result *result = node_array(&call, 3, NODE_INT32, RESULT_WORDS, NULL);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, launch_worker(path, arguments, count, limits, result));
}

static napi_value call_step_name(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  int32_t step = node_int32(&call, 0);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end_text(&call, launch_step_name(step));
}

static napi_value call_kill(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  int32_t pidfd = node_int32(&call, 0);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, launch_kill(pidfd));
}

static napi_value call_reap(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  int32_t pidfd = node_int32(&call, 0);
  struct launch_exit *out = node_array(&call, 1, NODE_BIGINT64, EXIT_WORDS, NULL);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, launch_reap(pidfd, out));
}

static napi_value call_cpu_ns(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  int32_t pid = node_int32(&call, 0);
  int32_t pidfd = node_int32(&call, 1);
  if (!node_ready(&call)) return node_refused(&call);
  return node_end(&call, launch_cpu_ns(pid, pidfd));
}

static napi_value call_host_facts(napi_env env, napi_callback_info info) {
  struct node_call call = node_begin(env, info);
  struct host_facts *out = node_array(&call, 0, NODE_BIGINT64, FACT_WORDS, NULL);
  if (!node_ready(&call)) return node_refused(&call);
  launch_host_facts(out);
  return node_end(&call, 0);
}

/* The name is Node's. */
LAUNCH_API napi_value napi_register_module_v1(napi_env env, napi_value exports);

napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  node_export(env, exports, "launchWorker", call_launch_worker);
  node_export(env, exports, "stepName", call_step_name);
  node_export(env, exports, "kill", call_kill);
  node_export(env, exports, "reap", call_reap);
  node_export(env, exports, "cpuNs", call_cpu_ns);
  node_export(env, exports, "hostFacts", call_host_facts);
  node_export_files(env, exports);
  return exports;
}
