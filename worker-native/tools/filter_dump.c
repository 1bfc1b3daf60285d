/*
 * Prints the seccomp programs of both architectures as the worker would build them, whatever machine this is: one line
 * of JSON each, {"arch", "sha256", "program": [[code, jump true, jump false, value], …]}.
 *
 * Called by the confinement tests, which interpret the programs, and by a reader who wants to see one.
 */
#include <inttypes.h>
#include <stdio.h>

#include "confine/bpf.h"
#include "confine/sha256.h"
#include "seccomp_arm64.h"
#include "seccomp_x64.h"

static int dump(const char *arch, const struct seccomp_table *table) {
  static struct bpf_instruction program[BPF_INSTRUCTIONS_MAX];
  size_t length = bpf_build(table, program, BPF_INSTRUCTIONS_MAX);
  if (length == 0) return 1;
  uint8_t hash[32];
  sha256((const uint8_t *)program, length * sizeof program[0], hash);
  printf("{\"arch\":\"%s\",\"sha256\":\"", arch);
  for (size_t i = 0; i < sizeof hash; i++) printf("%02x", hash[i]);
  printf("\",\"program\":[");
  for (size_t i = 0; i < length; i++) {
    printf("%s[%u,%u,%u,%" PRIu32 "]", i == 0 ? "" : ",", program[i].code, program[i].jump_true,
           program[i].jump_false, program[i].value);
  }
  puts("]}");
  return 0;
}

int main(void) { return dump("x64", &SECCOMP_TABLE_X64) | dump("arm64", &SECCOMP_TABLE_ARM64); }
