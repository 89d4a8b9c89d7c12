/* Recursive Fibonacci numbers of an argument below 16. fib(15) = 610 is the largest. */
#include "fig10.h"

static int fib(int n) {
  if (n < 2)
    return n;
  return fib(n - 1) + fib(n - 2);
}

void program(void) {
  int value = fib(choice() & 15);
#if REACH
  if (value >= 0)
    reached();
#else
  if (value < 0 || value > 610)
    reached();
#endif
}
