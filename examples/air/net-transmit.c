/* A network card's transmit path: the statistics say whether the ring is full, and the same comparison decides later
   whether the lock was taken. With BUG, the ring's tail is moved in between. */
#include "air.h"

#define RING 16u

static word head, tail;
static word dropped;

__attribute__((noinline)) int start_transmit(word length) {
  int full = head - tail >= RING;
  if (!full)
    spin_lock_irq();
  if (length > 1514)
    dropped++;
  else
    head++;
#if BUG
  if (head - tail < RING)
#else
  if (!full)
#endif
    spin_unlock_irq();
  return full;
}

void program(void) {
  head = (word)choice();
  tail = (word)choice();
  if (start_transmit((word)choice()) == 0)
    start_transmit(60);
}
