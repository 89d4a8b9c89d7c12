/* Even and odd call each other; the flawed one calls 0 odd. */
#include "frame.h"

static OPAQUE int is_odd(unsigned n);

static OPAQUE int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }

static OPAQUE int is_odd(unsigned n) { return n == 0 ? BUG : is_even(n - 1); }

void program(void) {
  unsigned n = input() & 31;
  must(is_even(n) == !(n & 1));
}
