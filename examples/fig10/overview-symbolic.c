/* The running example from any start: x is an input and y completes it to 500, both modulo 2^32. */
#include "fig10.h"

static void adjust(unsigned *x, unsigned *y) {
  while (*x != 0) {
    *x = *x - 1;
    *y = *y + 1;
  }
}

void program(void) {
  unsigned x = (unsigned)choice();
  unsigned y = 500 - x;
  adjust(&x, &y);
  if (y != 500)
    reached();
}
