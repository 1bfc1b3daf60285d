/*
 * Builds the seccomp filter (bpf.h). Shape of the program:
 *
 *     load architecture;  other than ours: kill
 *     load number;        from `refuse_from` on: kill
 *     for each row:       other number: skip the block
 *                         for each argument test: load half word(s), no value matches: kill
 *                         allow
 *     kill
 *
 * Each block is closed in itself: a wrong argument kills at once and never falls through to another row.
 */
#include "bpf.h"

#include <stdbool.h>

/* Offsets in the kernel's struct seccomp_data (little-endian, both architectures). */
enum { DATA_NUMBER = 0, DATA_ARCH = 4, DATA_ARGS = 16 };

enum {
  LOAD_WORD = 0x20,        /* BPF_LD | BPF_W | BPF_ABS */
  JUMP_EQUAL = 0x15,       /* BPF_JMP | BPF_JEQ | BPF_K */
  JUMP_AT_LEAST = 0x35,    /* BPF_JMP | BPF_JGE | BPF_K */
  RETURN_CONSTANT = 0x06   /* BPF_RET | BPF_K */
};

struct program {
  struct bpf_instruction *out;
  size_t capacity;
  size_t length;
  bool failed;
};

static void emit(struct program *program, uint16_t code, uint32_t value, size_t jump_true, size_t jump_false) {
  if (program->length >= program->capacity || jump_true > 255 || jump_false > 255) {
    program->failed = true;
    return;
  }
  program->out[program->length++] =
      (struct bpf_instruction){code, (uint8_t)jump_true, (uint8_t)jump_false, value};
}

static void emit_kill(struct program *program) {
  emit(program, RETURN_CONSTANT, SECCOMP_RETURN_KILL_PROCESS, 0, 0);
}

/* Goes on after itself only if the argument equals one of the values. */
static void emit_arg(struct program *program, const struct seccomp_arg *arg) {
  if (arg->index > 5 || arg->count < 1 || arg->count > SECCOMP_ARG_VALUES_MAX ||
      (arg->bits != 32 && arg->bits != 64)) {
    program->failed = true;
    return;
  }
  const uint32_t low = DATA_ARGS + 8u * arg->index;
  if (arg->bits == 64) {
    emit(program, LOAD_WORD, low + 4, 0, 0);
    emit(program, JUMP_EQUAL, 0, 1, 0);
    emit_kill(program);
  }
  emit(program, LOAD_WORD, low, 0, 0);
  for (size_t i = 0; i < arg->count; i++) {
    /* A match jumps over the comparisons that are left and over the kill behind them. */
    emit(program, JUMP_EQUAL, arg->values[i], (size_t)arg->count - i, 0);
  }
  emit_kill(program);
}

static void emit_row(struct program *program, const struct seccomp_row *row) {
  if (row->arg_count > SECCOMP_ROW_ARGS_MAX) {
    program->failed = true;
    return;
  }
  const size_t test = program->length;
  emit(program, JUMP_EQUAL, row->number, 0, 0);
  for (size_t i = 0; i < row->arg_count; i++) emit_arg(program, &row->args[i]);
  emit(program, RETURN_CONSTANT, SECCOMP_RETURN_ALLOW, 0, 0);
  if (program->failed) return;
  const size_t skip = program->length - test - 1;
  if (skip > 255) {
    program->failed = true;
    return;
  }
  program->out[test].jump_false = (uint8_t)skip;
  /* The argument tests overwrote the accumulator, but only paths that end in a return went through them. */
}

size_t bpf_build(const struct seccomp_table *table, struct bpf_instruction *out, size_t capacity) {
  struct program program = {.out = out, .capacity = capacity, .length = 0, .failed = false};
  emit(&program, LOAD_WORD, DATA_ARCH, 0, 0);
  emit(&program, JUMP_EQUAL, table->audit_arch, 1, 0);
  emit_kill(&program);
  emit(&program, LOAD_WORD, DATA_NUMBER, 0, 0);
  if (table->refuse_from != 0) {
    emit(&program, JUMP_AT_LEAST, table->refuse_from, 0, 1);
    emit_kill(&program);
  }
  for (uint32_t i = 0; i < table->row_count; i++) emit_row(&program, &table->rows[i]);
  emit_kill(&program);
  return program.failed ? 0 : program.length;
}
