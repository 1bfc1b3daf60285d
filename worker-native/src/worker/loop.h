/*
 * The worker's message loop: idle, one activation, idle again, until the parent closes standard input.
 *
 * Called by: main.c, once, after Welcome has been written.
 */
#ifndef FLOWCELL_WORKER_LOOP_H
#define FLOWCELL_WORKER_LOOP_H

_Noreturn void worker_loop(void);

#endif
