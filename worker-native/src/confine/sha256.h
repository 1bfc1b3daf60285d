/*
 * SHA-256 (FIPS 180-4) over one block of memory. Pure.
 *
 * Called by confine_linux.c for the hash of the filter that is reported in the Welcome.
 */
#ifndef FLOWCELL_CONFINE_SHA256_H
#define FLOWCELL_CONFINE_SHA256_H

#include <stddef.h>
#include <stdint.h>

void sha256(const uint8_t *bytes, size_t length, uint8_t out[32]);

#endif
