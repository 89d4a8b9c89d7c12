/* Five gates that a request may pass or not; the lock is kept only if it has passed all of them. Of 32 ways through the
   code one is wrong, the longest. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int passed;

OPAQUE void pass(void) { passed++; }

OPAQUE int main(void) {
  int request = choice();
  lock();
  if (request & 1)
    pass();
  if (request & 2)
    pass();
  if (request & 4)
    pass();
  if (request & 8)
    pass();
  if (request & 16)
    pass();
#if MISSING
  if (passed == 5)
    return 1;
#endif
  unlock();
  return 0;
}
