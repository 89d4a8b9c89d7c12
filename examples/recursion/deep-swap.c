/* A result through a pointer into the caller's frame; at the end it is what was put in. */
#include "frame.h"

static OPAQUE void put(unsigned n, unsigned *where) {
  if (n == 0) {
    *where = BUG ? 8 : 7;
    return;
  }
  put(n - 1, where);
}

void program(void) {
  unsigned found = 0;
  put(input(), &found);
  must(found == 7);
}
