/* Each number is the sum of the three before it. The last of three calls becomes a loop with the sum so far, so the head
   of that loop returns the sum that it is entered with and a number that only the rest of the argument decides. */
#include "frame.h"

static OPAQUE unsigned tribonacci(unsigned n) {
  if (n < 3)
    return n == 2;
  return tribonacci(n - 1) + tribonacci(n - 2) + tribonacci(n - 3);
}

void program(void) {
  unsigned n = input();
  if (n > 30)
    return;
  must(tribonacci(n) < (BUG ? 1000u : 20000000u));
}
