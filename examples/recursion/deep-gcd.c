/* The greatest common divisor by subtraction is positive and not above its first argument. */
#include "frame.h"

static OPAQUE unsigned gcd(unsigned a, unsigned b) {
  if (a == b)
    return a;
  return a > b ? gcd(a - b, b) : gcd(a, b - a);
}

void program(void) {
  unsigned a = input(), b = input();
  if (a == 0 || b == 0)
    return;
  unsigned found = gcd(a, b);
  must(found > (BUG ? 1u : 0u) && found <= a);
}
