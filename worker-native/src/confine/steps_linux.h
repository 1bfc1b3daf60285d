/*
 * The single steps of confinement on Linux, for confine_linux.c, which puts them in order, and for the probe binary,
 * which runs the Landlock layer alone to show what it stops and what it does not.
 *
 * Every step ends the process with its own exit code when it fails.
 */
#ifndef FLOWCELL_CONFINE_STEPS_LINUX_H
#define FLOWCELL_CONFINE_STEPS_LINUX_H

#include <stdbool.h>

#include "../../generated/protocol.h"

/* Step 1, second half: reads the memory map (startup_linux.c). */
void startup_check_memory_map(void);
/* The parent that startup_check saw. */
long startup_parent(void);

void step_close_descriptors(int exit_code);
void step_drop_identity(void);
void step_parent_death(void);
void step_limits(void);
void step_last_limit(void);
void step_no_new_privs(void);
void step_not_dumpable(void);
void step_deny_write_execute(struct welcome *facts);
void step_speculation(struct welcome *facts);
void step_landlock(struct welcome *facts, bool landlock_optional);
void step_seccomp(struct welcome *facts);

/* Reads back what the kernel enforces (before the filter makes that impossible) and ends on any difference. */
void attest(struct welcome *facts);

#endif
