/* The last thing that main does is to jump to a function that it has also called before: a return from that one is not
   always the end. MISSING=1 does not release the lock unless the request is 1. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int served;

OPAQUE int serve(void) { return ++served; }

OPAQUE int main(void) {
  lock();
  serve();
  if (choice() == 1) {
    unlock();
    return serve();
  }
#if !MISSING
  unlock();
#endif
  return serve();
}
