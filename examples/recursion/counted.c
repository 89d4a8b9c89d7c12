/* Calls are counted in a variable that outlives them: a complete binary tree of 20 levels has 2^20 - 1 nodes, too many to
   visit one by one. Where the compiler makes a loop of the second call, its head is entered with any count. */
#include "frame.h"

static unsigned visits;

static OPAQUE void visit(unsigned levels) {
  if (levels == 0)
    return;
  visits++;
  visit(levels - 1);
  visit(BUG && levels == 6 ? 4 : levels - 1);
}

void program(void) {
  unsigned levels = input();
  if (levels > 20)
    return;
  visit(levels);
  must(visits + 1 == 1u << levels);
}
