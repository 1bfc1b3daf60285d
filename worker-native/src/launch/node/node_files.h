/* files.h for JavaScript. Called by node_launch.c when Node loads the library. */
#ifndef FLOWCELL_LAUNCH_NODE_FILES_H
#define FLOWCELL_LAUNCH_NODE_FILES_H

#include "launch/node/node_api.h"

void node_export_files(napi_env env, napi_value exports);

#endif
