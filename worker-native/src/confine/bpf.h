/*
 * The seccomp filter as a classic BPF program, built in code from the generated table.
 *
 * Pure: no system call, no global. Called by confine_linux.c with the table of its architecture and by the hosted
 * tests with both. Whatever the table holds, a program that bpf_build returns refuses everything that no row names
 * with every one of its argument tests satisfied; a table that does not fit the builder yields no program at all.
 */
#ifndef FLOWCELL_CONFINE_BPF_H
#define FLOWCELL_CONFINE_BPF_H

#include <stddef.h>
#include <stdint.h>

/* One instruction, laid out as the kernel's struct sock_filter. */
struct bpf_instruction {
  uint16_t code;
  uint8_t jump_true;
  uint8_t jump_false;
  uint32_t value;
};

enum { SECCOMP_ARG_VALUES_MAX = 4, SECCOMP_ROW_ARGS_MAX = 2, BPF_INSTRUCTIONS_MAX = 256 };

/* The argument must equal one of `count` values; with 32 bits the upper half is not looked at. */
struct seccomp_arg {
  uint8_t index;
  uint8_t bits;
  uint8_t count;
  uint32_t values[SECCOMP_ARG_VALUES_MAX];
};

struct seccomp_row {
  uint32_t number;
  uint8_t arg_count;
  struct seccomp_arg args[SECCOMP_ROW_ARGS_MAX];
};

/* `refuse_from`: numbers from here on belong to another ABI (x32); 0 when there is none. */
struct seccomp_table {
  uint32_t audit_arch;
  uint32_t refuse_from;
  uint32_t row_count;
  const struct seccomp_row *rows;
};

enum {
  SECCOMP_RETURN_ALLOW = 0x7fff0000,
};
#define SECCOMP_RETURN_KILL_PROCESS 0x80000000u

/* The number of instructions written to `out`, or 0 when the table or the program does not fit. */
size_t bpf_build(const struct seccomp_table *table, struct bpf_instruction *out, size_t capacity);

#endif
