/*
 * Process entry of the freestanding Linux binaries (static position-independent executables without a libc).
 *
 * The kernel jumps to `_start`; this file relocates the binary, seals what the linker marked read-only after
 * relocation, seeds the stack-protector guard and calls `worker_main`, whose result is the exit code. It trusts the
 * kernel's initial stack and the binary's own headers, both of which nobody else can have written, and still checks
 * them: a binary that this code cannot fully relocate ends with the exit code `start_image`. Until the guard is
 * seeded nothing here may be instrumented or may read a relocated pointer.
 */
#include <stddef.h>
#include <stdint.h>

#include "../../generated/exit_codes.h"
#include "mem.h"
#include "sys.h"

int worker_main(int argc, char **argv, char **envp, const unsigned long *auxv);

_Noreturn void start_c(unsigned long *stack);
_Noreturn void __stack_chk_fail(void);

/* The symbol that `-fstack-protector` code compares with; any value but a guessable one is fine. */
uintptr_t __stack_chk_guard;

#if defined(__x86_64__)
#define RELOCATION_RELATIVE 8u /* R_X86_64_RELATIVE */
__asm__(
    ".text\n"
    ".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "  xorl %ebp, %ebp\n" /* ends every backtrace here */
    "  movq %rsp, %rdi\n"
    "  andq $-16, %rsp\n"
    "  call start_c\n"
    "  ud2\n"
    ".size _start, .-_start\n");
#else
#define RELOCATION_RELATIVE 1027u /* R_AARCH64_RELATIVE */
__asm__(
    ".text\n"
    ".globl _start\n"
    ".type _start, %function\n"
    "_start:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x0, sp\n"
    "  bl start_c\n"
    "  brk #1\n"
    ".size _start, .-_start\n");
#endif

enum {
  AUX_NULL = 0,
  AUX_PAGE_BYTES = 6,
  AUX_RANDOM = 25,
  SEGMENT_DYNAMIC = 2,
  SEGMENT_RELRO = 0x6474e552,
  DYNAMIC_NULL = 0,
  DYNAMIC_RELA = 7,
  DYNAMIC_RELA_BYTES = 8,
  DYNAMIC_RELA_ENTRY = 9,
  DYNAMIC_REL = 17,
  DYNAMIC_TEXTREL = 22,
  DYNAMIC_JMPREL = 23,
  DYNAMIC_RELR = 36
};

struct elf_header {
  uint8_t ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, program_offset, section_offset;
  uint32_t flags;
  uint16_t header_bytes, program_bytes, program_count, section_bytes, section_count, section_names;
};

struct elf_program {
  uint32_t type, flags;
  uint64_t offset, address, physical, file_bytes, memory_bytes, align;
};

struct elf_dynamic {
  int64_t tag;
  uint64_t value;
};

struct elf_rela {
  uint64_t offset, info;
  int64_t addend;
};

/* Defined by the linker at the first byte of the image, whose link address is 0. */
extern const struct elf_header __ehdr_start __attribute__((visibility("hidden")));

_Noreturn void __stack_chk_fail(void) { __builtin_trap(); }

__attribute__((no_stack_protector)) static const struct elf_program *find_segment(uint32_t type) {
  const struct elf_header *header = &__ehdr_start;
  const uint8_t *at = (const uint8_t *)header + header->program_offset;
  for (unsigned i = 0; i < header->program_count; i++, at += header->program_bytes) {
    const struct elf_program *segment = (const struct elf_program *)(const void *)at;
    if (segment->type == type) return segment;
  }
  return NULL;
}

/*
 * Applies every relative relocation. Any other kind (symbolic, indirect function, packed RELR, text relocation) is
 * refused: the build must not produce it, and skipping one would leave a wild pointer.
 */
__attribute__((no_stack_protector)) static void relocate(uintptr_t base) {
  const struct elf_program *segment = find_segment(SEGMENT_DYNAMIC);
  if (segment == NULL) sys_exit_group(EXIT_START_IMAGE);
  const struct elf_dynamic *entry = (const struct elf_dynamic *)(base + segment->address);
  uint64_t table = 0, bytes = 0, stride = sizeof(struct elf_rela);
  for (; entry->tag != DYNAMIC_NULL; entry++) {
    /* An if chain, not a switch: a jump table may itself need relocating. */
    if (entry->tag == DYNAMIC_RELA) {
      table = entry->value;
    } else if (entry->tag == DYNAMIC_RELA_BYTES) {
      bytes = entry->value;
    } else if (entry->tag == DYNAMIC_RELA_ENTRY) {
      stride = entry->value;
    } else if (entry->tag == DYNAMIC_REL || entry->tag == DYNAMIC_TEXTREL || entry->tag == DYNAMIC_JMPREL ||
               entry->tag == DYNAMIC_RELR) {
      sys_exit_group(EXIT_START_IMAGE);
    }
  }
  if (stride != sizeof(struct elf_rela) || bytes % sizeof(struct elf_rela) != 0) {
    sys_exit_group(EXIT_START_IMAGE);
  }
  const struct elf_rela *rela = (const struct elf_rela *)(base + table);
  for (uint64_t i = 0; i < bytes / sizeof(struct elf_rela); i++) {
    if ((uint32_t)rela[i].info != RELOCATION_RELATIVE) sys_exit_group(EXIT_START_IMAGE);
    *(uintptr_t *)(base + rela[i].offset) = base + (uintptr_t)rela[i].addend;
  }
}

/* Read-only from here on: the dynamic section, the global offset table, relocated constants. */
__attribute__((no_stack_protector)) static void seal(uintptr_t base, uintptr_t page_bytes) {
  const struct elf_program *segment = find_segment(SEGMENT_RELRO);
  if (segment == NULL || page_bytes == 0) sys_exit_group(EXIT_START_IMAGE);
  const uintptr_t first = (base + segment->address) & ~(page_bytes - 1);
  const uintptr_t last = (base + segment->address + segment->memory_bytes) & ~(page_bytes - 1);
  if (last > first && sys_mprotect((void *)first, last - first, SYS_PROT_READ) != 0) {
    sys_exit_group(EXIT_START_IMAGE);
  }
}

__attribute__((no_stack_protector)) _Noreturn void start_c(unsigned long *stack) {
  const uintptr_t base = (uintptr_t)&__ehdr_start;
  relocate(base);

  const int argc = (int)stack[0];
  char **argv = (char **)(stack + 1);
  char **envp = argv + argc + 1;
  char **after = envp;
  while (*after != NULL) after++;
  const unsigned long *auxv = (const unsigned long *)(after + 1);

  uintptr_t page_bytes = 0;
  const uint8_t *random = NULL;
  for (const unsigned long *aux = auxv; aux[0] != AUX_NULL; aux += 2) {
    if (aux[0] == AUX_PAGE_BYTES) page_bytes = aux[1];
    if (aux[0] == AUX_RANDOM) random = (const uint8_t *)aux[1];
  }
  seal(base, page_bytes);
  if (random == NULL) sys_exit_group(EXIT_START_IMAGE);
  memcpy(&__stack_chk_guard, random, sizeof __stack_chk_guard);
  /* A zero byte first in memory: a string overflow cannot write the guard, nor a string read leak it. */
  __stack_chk_guard &= ~(uintptr_t)0xff;

  sys_exit_group(worker_main(argc, argv, envp, auxv));
}
