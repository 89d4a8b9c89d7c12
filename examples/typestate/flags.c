/* The lock is taken only if the caller asks for it, and released under the same condition. MISSING=1 tests another one
   on the way out. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int total;

OPAQUE int update(int flags, int value) {
  int locked = flags & 1;
  if (locked)
    lock();
  total += value;
  if (value < 0) {
    if (locked)
      unlock();
    return -1;
  }
#if MISSING
  if (flags & 3)
    unlock();
#else
  if (locked)
    unlock();
#endif
  return total;
}

OPAQUE int main(void) {
  int flags = choice();
  return update(flags, choice());
}
