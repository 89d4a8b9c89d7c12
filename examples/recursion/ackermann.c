/* Ackermann's function of (1, n) is n + 2 and of (2, n) is 2n + 3; the flawed claim is about (2, 3). */
#include "frame.h"

static OPAQUE unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0)
    return n + 1;
  if (n == 0)
    return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

void program(void) {
  unsigned m = input() & 1, n = input() & 3;
  unsigned value = ackermann(m + 1, n);
  must(value == (m ? 2 * n + 3 - (BUG && n == 3) : n + 2));
}
