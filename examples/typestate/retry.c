/* A transfer is tried up to three times; the lock is given up between attempts. MISSING=1 keeps it after the last
   attempt has failed. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

OPAQUE int send(void) {
  int attempt = 0;
  for (;;) {
    lock();
    if (choice() == 1)
      break;
    attempt++;
    if (attempt == 3) {
#if !MISSING
      unlock();
#endif
      return -110;
    }
    unlock();
  }
  unlock();
  return attempt;
}

OPAQUE int main(void) {
  int result = send();
  return result < 0 ? 1 : 0;
}
