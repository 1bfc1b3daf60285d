/*
 * The rights that a worker's Landlock ruleset handles, for each ABI version of the kernel.
 *
 * Pure. Called by confine_linux.c and by the hosted tests; the rights are the generated table of
 * profiles/linux/landlock.json.
 */
#ifndef FLOWCELL_CONFINE_LANDLOCK_H
#define FLOWCELL_CONFINE_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

enum landlock_set { LANDLOCK_FILE_SYSTEM, LANDLOCK_NETWORK, LANDLOCK_SCOPED, LANDLOCK_SETS };

struct landlock_right {
  uint8_t abi;
  uint8_t set;
  uint8_t bit;
};

/* As the kernel's struct landlock_ruleset_attr begins. */
struct landlock_attributes {
  uint64_t sets[LANDLOCK_SETS];
};

/*
 * Every right of ABI `abi` (1 or more; one that is newer than the table counts as the newest). Returns the size of
 * the structure that such a kernel takes.
 */
size_t landlock_rights(long abi, struct landlock_attributes *rights);

#endif
