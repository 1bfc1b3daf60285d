/*
 * The floating-point functions that the generated engine calls, without a libm.
 *
 * Called by the engine's C (WebAssembly's floor, ceil, trunc, nearest and sqrt) wherever the compiler has no single
 * instruction for them: x86-64 without SSE4.1 has none for rounding. Every result is the one that IEEE 754 and
 * WebAssembly demand, the sign of zero included; a NaN comes back quiet. The rounding mode is the default one, to
 * nearest, which nothing in the worker changes. Built with -fno-builtin, or each function would be compiled into a
 * call of itself.
 */
#include <stdint.h>

double floor(double x);
double ceil(double x);
double trunc(double x);
double rint(double x);
double nearbyint(double x);
double sqrt(double x);
double fabs(double x);
double copysign(double magnitude, double sign);
float floorf(float x);
float ceilf(float x);
float truncf(float x);
float rintf(float x);
float nearbyintf(float x);
float sqrtf(float x);
float fabsf(float x);
float copysignf(float magnitude, float sign);

union word64 {
  double value;
  uint64_t bits;
};

union word32 {
  float value;
  uint32_t bits;
};

enum direction { TOWARDS_ZERO, UP, DOWN };

#define SIGN64 0x8000000000000000u
#define SIGN32 0x80000000u

/* Cuts the fraction off and, when it was not zero, moves the magnitude up by one unit if the direction asks for it. */
static double round64(double x, enum direction direction) {
  union word64 word = {.value = x};
  const uint64_t sign = word.bits & SIGN64;
  const unsigned biased = (unsigned)(word.bits >> 52) & 0x7ff;
  if (biased >= 1023 + 52) return biased == 0x7ff ? x + x : x;
  const int grow = (direction == UP && sign == 0) || (direction == DOWN && sign != 0);
  if (biased < 1023) {
    /* |x| < 1: zero stays zero, the rest becomes 0 or 1, with the sign of x. */
    const int zero = (word.bits & ~SIGN64) == 0;
    word.bits = sign | (grow && !zero ? 0x3ff0000000000000u : 0);
    return word.value;
  }
  const uint64_t fraction = (UINT64_C(1) << (1023 + 52 - biased)) - 1;
  if ((word.bits & fraction) == 0) return x;
  /* A carry out of the mantissa raises the exponent, which is just what the next integer needs. */
  if (grow) word.bits += fraction;
  word.bits &= ~fraction;
  return word.value;
}

static float round32(float x, enum direction direction) {
  union word32 word = {.value = x};
  const uint32_t sign = word.bits & SIGN32;
  const unsigned biased = (word.bits >> 23) & 0xff;
  if (biased >= 127 + 23) return biased == 0xff ? x + x : x;
  const int grow = (direction == UP && sign == 0) || (direction == DOWN && sign != 0);
  if (biased < 127) {
    const int zero = (word.bits & ~SIGN32) == 0;
    word.bits = sign | (grow && !zero ? 0x3f800000u : 0);
    return word.value;
  }
  const uint32_t fraction = (UINT32_C(1) << (127 + 23 - biased)) - 1;
  if ((word.bits & fraction) == 0) return x;
  if (grow) word.bits += fraction;
  word.bits &= ~fraction;
  return word.value;
}

double floor(double x) { return round64(x, DOWN); }
double ceil(double x) { return round64(x, UP); }
double trunc(double x) { return round64(x, TOWARDS_ZERO); }
float floorf(float x) { return round32(x, DOWN); }
float ceilf(float x) { return round32(x, UP); }
float truncf(float x) { return round32(x, TOWARDS_ZERO); }

double copysign(double magnitude, double sign) {
  union word64 word = {.value = magnitude};
  const union word64 other = {.value = sign};
  word.bits = (word.bits & ~SIGN64) | (other.bits & SIGN64);
  return word.value;
}

float copysignf(float magnitude, float sign) {
  union word32 word = {.value = magnitude};
  const union word32 other = {.value = sign};
  word.bits = (word.bits & ~SIGN32) | (other.bits & SIGN32);
  return word.value;
}

double fabs(double x) { return copysign(x, 1.0); }
float fabsf(float x) { return copysignf(x, 1.0f); }

/*
 * To nearest, ties to even: adding 2^52 leaves no bit for a fraction, so the addition itself rounds as asked. The
 * magnitude is used, and the sign put back, so that -0.3 becomes -0. `volatile` keeps the compiler from cancelling
 * the two constants.
 */
double rint(double x) {
  const union word64 word = {.value = x};
  const unsigned biased = (unsigned)(word.bits >> 52) & 0x7ff;
  if (biased >= 1023 + 52) return biased == 0x7ff ? x + x : x;
  volatile double magnitude = fabs(x) + 0x1p52;
  magnitude -= 0x1p52;
  return copysign(magnitude, x);
}

float rintf(float x) {
  const union word32 word = {.value = x};
  const unsigned biased = (word.bits >> 23) & 0xff;
  if (biased >= 127 + 23) return biased == 0xff ? x + x : x;
  volatile float magnitude = fabsf(x) + 0x1p23f;
  magnitude -= 0x1p23f;
  return copysignf(magnitude, x);
}

/* They differ from rint only in a status flag that nothing here reads. */
double nearbyint(double x) { return rint(x); }
float nearbyintf(float x) { return rintf(x); }

double sqrt(double x) {
  double root;
#if defined(__x86_64__)
  __asm__("sqrtsd %1, %0" : "=x"(root) : "x"(x));
#elif defined(__aarch64__)
  __asm__("fsqrt %d0, %d1" : "=w"(root) : "w"(x));
#endif
  return root;
}

float sqrtf(float x) {
  float root;
#if defined(__x86_64__)
  __asm__("sqrtss %1, %0" : "=x"(root) : "x"(x));
#elif defined(__aarch64__)
  __asm__("fsqrt %s0, %s1" : "=w"(root) : "w"(x));
#endif
  return root;
}

/* What gcc calls for __builtin_popcountll on processors that may lack the instruction: bits in ever larger groups. */
int __popcountdi2(unsigned long long bits);
int __popcountdi2(unsigned long long bits) {
  uint64_t sum = bits - ((bits >> 1) & UINT64_C(0x5555555555555555));
  sum = (sum & UINT64_C(0x3333333333333333)) + ((sum >> 2) & UINT64_C(0x3333333333333333));
  sum = (sum + (sum >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  return (int)((sum * UINT64_C(0x0101010101010101)) >> 56);
}
