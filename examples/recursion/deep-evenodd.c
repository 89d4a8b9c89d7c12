/* Even and odd by mutual recursion, for any number; the flawed one errs at 11. */
#include "frame.h"

static OPAQUE int odd(unsigned n);

static OPAQUE int even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }

static OPAQUE int odd(unsigned n) { return n == 0 ? 0 : BUG && n == 11 ? 0 : even(n - 1); }

void program(void) {
  unsigned n = input();
  must(even(n) == !(n & 1));
}
