/*
 * The five memory functions that compilers may call on their own, without a libc.
 *
 * Called by all freestanding code and by calls that gcc and clang emit for assignments of structures. mem.c defines
 * them in freestanding builds; a hosted build takes the same declarations and the C library's definitions.
 */
#ifndef FLOWCELL_BASE_MEM_H
#define FLOWCELL_BASE_MEM_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t length);
void *memmove(void *to, const void *from, size_t length);
void *memset(void *to, int byte, size_t length);
int memcmp(const void *left, const void *right, size_t length);
size_t strlen(const char *text);

#endif
