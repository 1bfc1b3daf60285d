/* The rights of a worker's Landlock ruleset; the contract is in landlock.h. */
#include "landlock.h"

#include "../../generated/landlock_rights.h"
#include "../base/mem.h"

size_t landlock_rights(long abi, struct landlock_attributes *rights) {
  memset(rights, 0, sizeof *rights);
  size_t sets = 1;
  for (size_t i = 0; i < sizeof LANDLOCK_RIGHTS / sizeof LANDLOCK_RIGHTS[0]; i++) {
    const struct landlock_right *right = &LANDLOCK_RIGHTS[i];
    if (right->abi > abi) continue;
    rights->sets[right->set] |= UINT64_C(1) << right->bit;
    /* The kernel's structure grew with the first right of each set; an older kernel refuses a longer one. */
    if (right->set >= sets) sets = (size_t)right->set + 1;
  }
  return sets * sizeof rights->sets[0];
}
