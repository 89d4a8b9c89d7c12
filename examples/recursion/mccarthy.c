/* McCarthy's function is 91 up to 101; the flawed one is asked for 102 as well. */
#include "frame.h"

static OPAQUE unsigned f(unsigned n) { return n > 100 ? n - 10 : f(f(n + 11)); }

void program(void) {
  unsigned n = input();
  if (n < 96 || n > (BUG ? 102u : 101u))
    return;
  must(f(n) == 91);
}
