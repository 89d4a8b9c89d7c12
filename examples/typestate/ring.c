/* Entries of a ring are taken out one after the other, each under the lock. MISSING=1 returns from within the loop when
   an entry is broken, the lock held. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int taken;

OPAQUE int drain(int count) {
  for (int entry = 0; entry < count; entry++) {
    lock();
    int value = choice();
    if (value == 0) {
      unlock();
      return entry;
    }
    if (value < 0) {
#if !MISSING
      unlock();
#endif
      return -5;
    }
    taken += value;
    unlock();
  }
  return count;
}

OPAQUE int main(void) {
  int count = choice() & 7;
  return drain(count);
}
