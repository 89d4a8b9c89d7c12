/* 1 + 2 + … + n by recursion, n below 16; the flawed one is asked for one value of n too many. */
#include "frame.h"

static OPAQUE unsigned sum(unsigned n) { return n == 0 ? 0 : n + sum(n - 1); }

void program(void) {
  unsigned n = input();
  if (n > (BUG ? 15u : 14u))
    return;
  must(sum(n) < 120);
}
