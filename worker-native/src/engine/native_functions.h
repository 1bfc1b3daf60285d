/*
 * The functions that the worker gives to the prelude, as one table.
 *
 * Used by: make_image.c (creates a script function for each row, on the temporary global __flowcell_native)
 * and the bridge (tells by the host_ref_id which one was called). The ids are baked into the image.
 *
 * Senders live under __flowcell_native.send; their id is (message type << 8) | frame flags, so that the bridge
 * needs no second table. The others have ids from ENGINE_NATIVE_BASE on.
 */
#ifndef FLOWCELL_ENGINE_NATIVE_FUNCTIONS_H
#define FLOWCELL_ENGINE_NATIVE_FUNCTIONS_H

/* X(name in script, message type, frame flags) */
#define ENGINE_SENDERS(X) \
  X(hostCall0, 2, 0)      \
  X(hostCall1, 2, 1)      \
  X(cancelCall, 3, 0)     \
  X(console, 4, 0)        \
  X(blocked, 5, 0)        \
  X(finished0, 6, 0)      \
  X(finished1, 6, 1)      \
  X(refused, 7, 0)

#define ENGINE_SENDER_ID(type, flags) (((type) << 8) | (flags))

enum {
  ENGINE_NATIVE_BASE = 0x10000,
  ENGINE_NATIVE_LAST_FAILURE = ENGINE_NATIVE_BASE + 1, /* lastFailure(): "" | "memory" | "stack" */
  ENGINE_NATIVE_CPU_US = ENGINE_NATIVE_BASE + 2,       /* cpuUs(): number */
};

/* X(name in script, id) */
#define ENGINE_NATIVES(X)                    \
  X(lastFailure, ENGINE_NATIVE_LAST_FAILURE) \
  X(cpuUs, ENGINE_NATIVE_CPU_US)

#endif
