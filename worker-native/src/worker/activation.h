/*
 * One activation: from a frame Activate to Finished or Refused, and the hooks through which script reaches C.
 *
 * Called by: loop.c. Kept true: after activation_run returns, the engine is pristine again and nothing of the
 * activation is left but the counters that the next one overwrites.
 */
#ifndef FLOWCELL_WORKER_ACTIVATION_H
#define FLOWCELL_WORKER_ACTIVATION_H

#include "wire/frame.h"

/* Runs the activation whose frame header has just been consumed; its text and attachments follow on standard input. */
void activation_run(const struct frame_header *activate);

#endif
