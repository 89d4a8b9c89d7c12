/* A tree of any shape: a loop calls the function itself. The leaves counted are cut off at 100. */
#include "frame.h"

static OPAQUE unsigned leaves(unsigned children) {
  if (children == 0)
    return 1;
  unsigned found = 0;
  for (unsigned i = 0; i < children; i++) {
    found += leaves(input());
    if (found >= 100)
      found = BUG && i == 2 ? 101 : 100;
  }
  return found;
}

void program(void) { must(leaves(input()) <= 100); }
