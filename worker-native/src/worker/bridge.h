/*
 * What script may do to the outside: the senders behind the prelude, the interrupt hook, the guest's clock.
 *
 * Called by: activation.c and, through the hooks that engine.h declares, the engine.
 *
 * Trust: every argument of a hook is guest-controlled. C looks at values only by their tag, takes text only from
 * what is a string already (so no guest code runs in a conversion) and bytes only from what is an ArrayBuffer.
 * Kept true: a frame leaves only in the phases in which it may; Finished and Refused never return to script.
 */
#ifndef FLOWCELL_WORKER_BRIDGE_H
#define FLOWCELL_WORKER_BRIDGE_H

#include <stdint.h>

/* Why C itself ends an activation. */
enum bridge_exhausted { BRIDGE_EXHAUSTED_CPU, BRIDGE_EXHAUSTED_MEMORY, BRIDGE_EXHAUSTED_STACK };

/* Begins an activation's accounting: its CPU clock starts now, nothing has been sent. */
void bridge_begin(void);

/* The activation's budgets, known once its struct has been read. */
void bridge_set_budget(uint64_t cpu_us, uint32_t heap_bytes, uint32_t stack_bytes);

/* CPU time that the activation has used, in microseconds. */
uint64_t bridge_cpu_us(void);

/* Writes Finished for an exhausted budget and leaves the engine for good (engine_abandon); CPU ends the process. */
_Noreturn void bridge_finish_exhausted(enum bridge_exhausted what);

/* The engine failed in the prelude's own code: for the lack of stack or memory that it recorded; the process ends
 * when it recorded none. */
_Noreturn void bridge_finish_failed(void);

#endif
