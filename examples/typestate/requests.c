/* Two requests are served by a function with a loop and several ways out. MISSING=1 and MISSING=2 each forget to
   release the lock on one of them; MISSING=2 only after three rounds of the loop. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

OPAQUE int serve(int request) {
  lock();
  if (request == 1) {
#if MISSING != 1
    unlock();
#endif
    return -1;
  }
  for (int round = 0; round < 3; round++)
    request += round;
  if (request == 50) {
#if MISSING == 2
    return 7;
#endif
  }
  unlock();
  return request;
}

OPAQUE int main(void) {
  int result = serve(choice());
  if (result > 0)
    result = serve(choice());
  return result;
}
