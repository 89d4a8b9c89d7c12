/* Counting up to three by recursion of any depth; the flawed one counts up to five. */
#include "frame.h"

static OPAQUE unsigned count(unsigned n) {
  if (n == 0)
    return 0;
  unsigned below = count(n - 1) + 1;
  if (below > (BUG ? 5u : 3u))
    return 3;
  return below;
}

void program(void) { must(count(input()) != 5); }
