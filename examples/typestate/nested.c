/* The lock is taken in one function and released in others that it calls. MISSING=1: `fail` is also called by a caller
   that holds no lock. MISSING=2: `finish` forgets the lock for one status. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int failures;

OPAQUE int fail(int code) {
  failures++;
  unlock();
  return code;
}

OPAQUE int finish(int status) {
#if MISSING == 2
  if (status == 77)
    return status;
#endif
  unlock();
  return status;
}

OPAQUE int transfer(int size) {
#if MISSING == 1
  if (size == 0)
    return fail(-14);
#else
  if (size == 0)
    return -14;
#endif
  lock();
  if (size > 4096)
    return fail(-7);
  return finish(size);
}

OPAQUE int main(void) {
  int result = transfer(choice());
  if (result < 0)
    result = transfer(16);
  return result;
}
