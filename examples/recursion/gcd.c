/* The greatest common divisor of two numbers below 8 divides both; the flawed one ends too early. */
#include "frame.h"

static OPAQUE unsigned gcd(unsigned a, unsigned b) { return b <= (BUG ? 1u : 0u) ? a : gcd(b, a % b); }

void program(void) {
  unsigned a = (input() & 7) + 1, b = (input() & 7) + 1;
  unsigned divisor = gcd(a, b);
  must(a % divisor == 0 && b % divisor == 0);
}
