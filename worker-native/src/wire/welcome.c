/* The writer of the Welcome header; see welcome.h. */
#include "wire/welcome.h"

#if defined(__x86_64__)
#define WELCOME_ARCH "x64"
#elif defined(__aarch64__)
#define WELCOME_ARCH "arm64"
#else
#error "the worker runs on x86-64 and arm64"
#endif

#if defined(__linux__)
#define WELCOME_OS "linux"
#else
#error "the worker runs on Linux"
#endif

static void welcome_quoted(struct text *out, const char *string) {
  text_bytes(out, "\"", 1);
  text_string(out, string);
  text_bytes(out, "\"", 1);
}

static void welcome_hex(struct text *out, uint64_t value) {
  text_bytes(out, "\"", 1);
  text_hex(out, value, 16);
  text_bytes(out, "\"", 1);
}

static void welcome_digest(struct text *out, const uint8_t digest[32]) {
  text_bytes(out, "\"", 1);
  text_hex_bytes(out, digest, 32);
  text_bytes(out, "\"", 1);
}

/* The kernel's "no limit" is all ones. */
static void welcome_limit(struct text *out, uint64_t limit) {
  if (limit == UINT64_MAX) text_bytes(out, "-1", 2);
  else text_unsigned(out, limit);
}

#define WRITE_PROTOCOL(member) text_unsigned(out, PROTOCOL_VERSION)
#define WRITE_OS(member) welcome_quoted(out, WELCOME_OS)
#define WRITE_ARCH(member) welcome_quoted(out, WELCOME_ARCH)
#define WRITE_SHA256(member) welcome_digest(out, welcome->member)
#define WRITE_SHA256_TEXT(member) welcome_quoted(out, welcome->member)
#define WRITE_BITS64(member) welcome_hex(out, welcome->member)
#define WRITE_BOOLEAN(member) text_string(out, welcome->member ? "true" : "false")
#define WRITE_UINT32(member) text_unsigned(out, welcome->member)
#define WRITE_LIMIT(member) welcome_limit(out, welcome->member)
#define WRITE_MASK(member) text_unsigned(out, welcome->member)

void welcome_write(struct text *out, const struct welcome *welcome) {
  const char *separator = "{\"";
#define X(kind, member, name)   \
  text_string(out, separator);  \
  text_string(out, name "\":"); \
  WRITE_##kind(member);         \
  separator = ",\"";
  WELCOME_FIELDS(X)
#undef X
  text_bytes(out, "}", 1);
}
