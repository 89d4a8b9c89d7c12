/* A tree of blocks is walked by a function that calls itself; leaves are changed under the lock. MISSING=1 keeps it in
   leaves of one kind, so that the walk stops at the next one or ends with the lock held. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int changed;

OPAQUE int walk(int depth) {
  if (depth == 0) {
    lock();
    int kind = choice();
#if MISSING
    if (kind == 13)
      return 1;
#endif
    changed += kind;
    unlock();
    return 1;
  }
  int count = walk(depth - 1);
  return count + walk(depth - 1);
}

OPAQUE int main(void) { return walk(choice() & 1); }
