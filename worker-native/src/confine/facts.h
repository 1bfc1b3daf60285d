/*
 * What a confined worker tells about itself in its Welcome; every field is read back from the kernel.
 *
 * Filled by confine_*.c, written to the parent by the worker.
 */
#ifndef FLOWCELL_CONFINE_FACTS_H
#define FLOWCELL_CONFINE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct welcome {
  uint8_t build_id[32];
  uint8_t fingerprint[32];
  uint8_t seccomp_sha256[32];
  uint32_t seccomp_length;
  bool seccomp_tsync;
  uint32_t landlock_abi;
  bool no_new_privs;
  bool dumpable;
  bool mdwe;
  uint32_t threads;
  uint32_t uid;
  uint32_t gid;
  uint32_t groups;
  uint64_t cap_effective;
  uint64_t cap_permitted;
  uint64_t cap_inheritable;
  uint64_t cap_ambient;
  uint64_t limit_core;
  uint64_t limit_data;
  uint64_t limit_cpu;
  uint64_t limit_stack;
  uint64_t limit_nofile;
  uint64_t limit_fsize;
  uint64_t limit_nproc;
  uint64_t descriptors;
  uint32_t environment_count;
  uint32_t spec_store_bypass;
  uint32_t spec_indirect_branch;
};

#endif
