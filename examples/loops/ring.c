/* A ring buffer: the indices stay inside, so that what lies beside it is not overwritten. */
#include "loops.h"

static struct {
  int cells[8];
  int guard;
} ring = {{0}, 42};

void program(void) {
  unsigned at = 0;
  while (choice()) {
    ring.cells[at] = choice();
    at = at + 1;
#if SAFE
    if (at >= 8)
#else
    if (at > 8)
#endif
      at = 0;
  }
  require(ring.guard == 42);
}
