/*
 * Prints the seccomp programs of both architectures as the worker builds them, whatever machine this is.
 *
 *     filter-dump              one line of JSON each: {"arch", "sha256", "program": [[code, true, false, value], …]}
 *     filter-dump --identity   one object: {"seccomp": {arch: {"sha256", "length"}}, "landlockAbiMax"}
 *
 * Called by the native build, which writes what a worker's Welcome must say, by the confinement tests, which interpret
 * the programs, and by a reader who wants to see one.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "confine/bpf.h"
#include "confine/sha256.h"
#include "landlock_rights.h"
#include "seccomp_arm64.h"
#include "seccomp_x64.h"

struct built {
  struct bpf_instruction program[BPF_INSTRUCTIONS_MAX];
  size_t length;
  char hash[65];
};

static bool build(const struct seccomp_table *table, struct built *out) {
  out->length = bpf_build(table, out->program, BPF_INSTRUCTIONS_MAX);
  uint8_t hash[32];
  sha256((const uint8_t *)out->program, out->length * sizeof out->program[0], hash);
  for (size_t i = 0; i < sizeof hash; i++) snprintf(out->hash + 2 * i, 3, "%02x", hash[i]);
  return out->length > 0;
}

static void dump(const char *arch, const struct built *built) {
  printf("{\"arch\":\"%s\",\"sha256\":\"%s\",\"program\":[", arch, built->hash);
  for (size_t i = 0; i < built->length; i++) {
    const struct bpf_instruction *one = &built->program[i];
    printf("%s[%u,%u,%u,%" PRIu32 "]", i == 0 ? "" : ",", one->code, one->jump_true, one->jump_false, one->value);
  }
  puts("]}");
}

static void identity(const char *arch, const struct built *built) {
  printf("\"%s\":{\"sha256\":\"%s\",\"length\":%zu}", arch, built->hash, built->length);
}

int main(int argc, char **argv) {
  static struct built x64, arm64;
  if (!build(&SECCOMP_TABLE_X64, &x64) || !build(&SECCOMP_TABLE_ARM64, &arm64)) {
    fputs("flowcell: a seccomp table does not fit the program builder\n", stderr);
    return 1;
  }
  if (argc == 1) {
    dump("x64", &x64);
    dump("arm64", &arm64);
    return 0;
  }
  if (argc != 2 || strcmp(argv[1], "--identity") != 0) {
    fputs("flowcell: usage: filter-dump [--identity]\n", stderr);
    return 64;
  }
  fputs("{\"seccomp\":{", stdout);
  identity("x64", &x64);
  putchar(',');
  identity("arm64", &arm64);
  printf("},\"landlockAbiMax\":%d}\n", LANDLOCK_ABI_KNOWN);
  return 0;
}
