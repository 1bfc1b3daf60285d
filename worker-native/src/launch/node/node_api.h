/*
 * The part of Node-API that the launcher library uses. Declared here because Node is installed without its headers; names,
 * types and numbers are those of Node-API version 8, which every Node since 15 has and none may change.
 *
 * Called by: the files beside this one. Node itself defines the functions: they are weak here, so that the library links
 * without Node, and they are called only from what Node calls.
 */
#ifndef FLOWCELL_LAUNCH_NODE_API_H
#define FLOWCELL_LAUNCH_NODE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);

/* napi_status; every other number is a failure. */
enum { NODE_OK = 0 };

/* napi_typedarray_type. */
enum node_array { NODE_UINT8 = 1, NODE_INT32 = 5, NODE_BIGINT64 = 9, NODE_BIGUINT64 = 10 };

/* "The length is up to the zero byte." */
#define NODE_AUTO_LENGTH SIZE_MAX

#define NODE_FUNCTION(name, ...) __attribute__((weak)) int name(napi_env env, __VA_ARGS__)

NODE_FUNCTION(napi_get_cb_info, napi_callback_info info, size_t *count, napi_value *arguments, napi_value *this, void **data);
NODE_FUNCTION(napi_create_function, const char *name, size_t length, napi_callback call, void *data, napi_value *result);
NODE_FUNCTION(napi_set_named_property, napi_value object, const char *name, napi_value value);
NODE_FUNCTION(napi_get_value_double, napi_value value, double *result);
NODE_FUNCTION(napi_get_value_string_utf8, napi_value value, char *text, size_t capacity, size_t *length);
NODE_FUNCTION(napi_get_array_length, napi_value value, uint32_t *length);
NODE_FUNCTION(napi_get_element, napi_value object, uint32_t index, napi_value *result);
NODE_FUNCTION(napi_get_typedarray_info, napi_value value, int *type, size_t *length, void **data, napi_value *buffer,
              size_t *offset);
NODE_FUNCTION(napi_create_double, double value, napi_value *result);
NODE_FUNCTION(napi_create_string_utf8, const char *text, size_t length, napi_value *result);
NODE_FUNCTION(napi_get_null, napi_value *result);
NODE_FUNCTION(napi_throw_type_error, const char *code, const char *message);

#endif
