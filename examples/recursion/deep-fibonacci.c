/* Fibonacci's numbers, cut off at 1000: two recursive calls, and their results must be kept apart. */
#include "frame.h"

static OPAQUE unsigned fibonacci(unsigned n) {
  if (n < 2)
    return n;
  unsigned found = fibonacci(n - 1) + fibonacci(n - 2);
  return found > 1000 ? 1000 : found;
}

void program(void) {
  unsigned n = input();
  unsigned found = fibonacci(n);
  must(found <= (BUG ? 143u : 1000u));
}
