/*
 * What a test build may do wrong on purpose, so that the checks can be seen to refuse it.
 *
 * The shipped worker and probe are built without FLOWCELL_TEST_BUILD: there every question is the constant "no", and
 * a test looks for these names in the shipped files.
 */
#ifndef FLOWCELL_CONFINE_DEVIATIONS_H
#define FLOWCELL_CONFINE_DEVIATIONS_H

#include <stdbool.h>

/*
 * traced            a tracer may be attached (the system call tracer needs it)
 * extra-thread      a second thread runs when the startup checks begin
 * exec-personality  READ_IMPLIES_EXEC is switched on before the startup checks
 * shared-mapping    a shared page is mapped before the memory map is read
 * skip-*            the step is left out, and with it what attest() says about it: a worker that the parent must refuse
 */
#define DEVIATIONS(X)                          \
  X(TRACED, "traced")                          \
  X(EXTRA_THREAD, "extra-thread")              \
  X(EXEC_PERSONALITY, "exec-personality")      \
  X(SHARED_MAPPING, "shared-mapping")          \
  X(SKIP_DESCRIPTORS, "skip-descriptors")      \
  X(SKIP_LIMITS, "skip-limits")                \
  X(SKIP_NO_NEW_PRIVS, "skip-no-new-privs")    \
  X(SKIP_DUMPABLE, "skip-dumpable")            \
  X(SKIP_MDWE, "skip-mdwe")                    \
  X(SKIP_LANDLOCK, "skip-landlock")            \
  X(SKIP_SECCOMP, "skip-seccomp")

enum deviation {
#define DEVIATION_NAME(name, text) DEVIATION_##name,
  DEVIATIONS(DEVIATION_NAME)
#undef DEVIATION_NAME
};

#if defined(FLOWCELL_TEST_BUILD)
/* Takes an argument "--test-deviation=NAME"; false when it is another argument or names none. */
bool deviation_argument(const char *argument);
bool deviates(enum deviation deviation);
void deviate_before_startup(void);
void deviate_before_memory_map(void);
#else
static inline bool deviates(enum deviation deviation) {
  (void)deviation;
  return false;
}
static inline void deviate_before_startup(void) {}
static inline void deviate_before_memory_map(void) {}
#endif

#endif
