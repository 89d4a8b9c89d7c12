/* Addition by recursion over the second number, which may be negative. */
#include "frame.h"

static OPAQUE int sum(int m, int n) {
  if (n == 0)
    return m;
  if (n > 0)
    return sum((int)((unsigned)m + 1), n - 1);
  return sum((int)((unsigned)m - (BUG && n == -9 ? 2 : 1)), n + 1);
}

void program(void) {
  int m = input(), n = input();
  must((unsigned)sum(m, n) == (unsigned)m + (unsigned)n);
}
