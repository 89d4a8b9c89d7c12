/* A LAN card's interrupt handler walks the causes; those above the timer are served under the lock. With BUG, the last
   cause leaves without releasing it. */
#include "air.h"

static word served[8];

__attribute__((noinline)) void interrupt(word cause) {
  word flags;
  switch (cause & 7) {
  case 0:
    return;
  case 1:
  case 2:
    served[cause & 3]++;
    break;
  case 3:
  case 4:
  case 5:
    spin_lock();
    served[cause & 7]++;
    spin_unlock();
    break;
  case 6:
    flags = spin_lock_irqsave();
    served[6]++;
    spin_unlock_irqrestore(flags);
    break;
  default:
    spin_lock();
    served[7]++;
#if !BUG
    spin_unlock();
#endif
    break;
  }
}

void program(void) {
  interrupt((word)choice());
  interrupt((word)choice());
}
