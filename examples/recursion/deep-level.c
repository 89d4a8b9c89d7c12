/* A global counts how deep the recursion is; behind it, it is as before. The flawed one forgets a way out. */
#include "frame.h"

static unsigned level;

static OPAQUE void walk(unsigned n) {
  level++;
  if (n & 1)
    walk(n >> 1);
  if (n & 2)
    walk(input());
  if (BUG && n == 1234)
    return;
  level--;
}

void program(void) {
  walk(input());
  must(level == 0);
}
