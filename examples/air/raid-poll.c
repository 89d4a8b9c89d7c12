/* A RAID controller is polled until it has no more status words. The lock is held across the loop if the controller
   was busy at first; with BUG, the loop's own error exit leaves it held. */
#include "air.h"

static word completed, failed;

__attribute__((noinline)) int poll(void) {
  word busy = (word)choice() & 1;
  word status;
  if (busy)
    spin_lock_irq();
  while ((status = (word)choice()) != 0) {
    if ((status & 0xf000) == 0xf000) {
      failed++;
#if BUG
      return -1;
#else
      break;
#endif
    }
    completed++;
  }
  if (busy)
    spin_unlock_irq();
  return 0;
}

void program(void) {
  poll();
  poll();
}
