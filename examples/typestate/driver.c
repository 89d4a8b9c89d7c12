/* A driver of the kind that lock checkers are shown with: requests come in and are served under the lock.
   MISSING=1 forgets to release the lock when a request fails. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int served;

OPAQUE int main(void) {
  int request;
  do {
    lock();
    request = choice();
    if (request < 0) {
#if !MISSING
      unlock();
#endif
      continue;
    }
    served += request;
    unlock();
  } while (request != 0);
  return served;
}
