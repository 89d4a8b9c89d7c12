/* A lock that may not be had: whoever does not get it must not release it. MISSING=1 releases it all the same for
   request 4, MISSING=2 also keeps it for negative requests. Requests are counted up, from any number, until the lock was
   free or the number is above 5. */
#include "start.h"

static int taken;

OPAQUE void lock(void) { taken = 1; }
OPAQUE void unlock(void) { taken = 0; }

OPAQUE int trylock(void) {
  if (choice() & 1)
    return 0;
  lock();
  return 1;
}

OPAQUE int work(int request) {
  if (!trylock()) {
#if MISSING
    if (request == 4) {
      unlock();
      return -1;
    }
#endif
    return -16;
  }
  if (request < 0) {
#if MISSING != 2
    unlock();
#endif
    return -22;
  }
  unlock();
  return 0;
}

OPAQUE int main(void) {
  int request = choice();
  while (work(request) == -16)
    if (request++ > 5)
      return 1;
  return 0;
}
