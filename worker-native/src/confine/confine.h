/*
 * How a worker process takes its own authority away. One header, one implementation per operating system.
 *
 * Called once each by `worker_main` of the worker and of the probe, before the first byte from the parent is read:
 * `startup_check` first, then whatever must be mapped for the engine, then `confine_enter`. Neither returns unless
 * every step succeeded: a step that fails ends the process with its own code (profiles/exit-codes.json) without a
 * word, because nothing that an unconfined worker says may be believed. TRUST: the environment, the descriptors and
 * the memory map that the launcher left are hostile until checked; the kernel is trusted.
 */
#ifndef FLOWCELL_CONFINE_CONFINE_H
#define FLOWCELL_CONFINE_CONFINE_H

#include <stdbool.h>

#include "../../generated/protocol.h"

/* Step 1. `facts` is cleared and receives what can be seen only now. */
void startup_check(char **envp, const unsigned long *auxv, struct welcome *facts);

/*
 * The rest of step 1 (the memory map, as the engine left it) to step 6. Afterwards the process can read standard input,
 * write standard output, use memory that it already has, read its CPU clock, and exit.
 * `landlock_optional` is the operator's word: without Landlock in the kernel (and only then) go on with seccomp alone.
 * `facts` then holds what the kernel confirmed. The caller fills protocol, build id and fingerprint.
 */
void confine_enter(struct welcome *facts, bool landlock_optional);

#endif
