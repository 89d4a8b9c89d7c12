/* A disk's timer handler: expired requests are restarted without the lock, which is taken again afterwards. With BUG,
   the request that gives up forgets that the lock is not held. */
#include "air.h"

struct request {
  word tries, sector;
};

static struct request current;

static __attribute__((noinline)) int restart(struct request *request) {
  request->tries++;
  return choice() != 0;
}

__attribute__((noinline)) void expired(void) {
  word flags = spin_lock_irqsave();
  if (current.tries != 0) {
    int again;
    spin_unlock_irqrestore(flags);
    again = restart(&current);
#if BUG
    if (again)
#endif
      flags = spin_lock_irqsave();
    if (!again)
      current.tries = 0;
  }
  spin_unlock_irqrestore(flags);
}

void program(void) {
  current.tries = (word)choice() & 3;
  expired();
}
