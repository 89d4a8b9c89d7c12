/* The identity by recursion, for any number; the flawed program takes 25 for impossible. */
#include "frame.h"

static OPAQUE unsigned id(unsigned n) { return n == 0 ? 0 : id(n - 1) + 1; }

void program(void) {
  unsigned n = input();
  unsigned found = id(n);
  must(BUG ? found != 25 : found == n);
}
