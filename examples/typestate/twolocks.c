/* Two devices, each with a lock of its own; a request says which. WRONG=1 releases the lock of the device that the
   request has been moved to, which need not be the one that was locked. */
#include "start.h"

struct lock {
  int word;
};

OPAQUE void lock(struct lock *l) { __asm__ volatile("" : : "r"(l)); }
OPAQUE void unlock(struct lock *l) { __asm__ volatile("" : : "r"(l)); }

static struct lock locks[2];

OPAQUE int serve(int device, int moved) {
  struct lock *held = &locks[device & 1];
  lock(held);
  int now = device ^ (moved == 3);
#if WRONG
  unlock(&locks[now & 1]);
#else
  unlock(held);
#endif
  return now;
}

OPAQUE int main(void) {
  int device = choice();
  serve(device, choice());
  return serve(device, 0);
}
