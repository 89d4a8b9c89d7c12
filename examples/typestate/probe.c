/* A device is set up in three steps; what fails is undone, and the lock is released on the way out. MISSING=1 leaves
   before that if the second or the third step failed. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int memory, interrupt, clock;

OPAQUE int probe(void) {
  int result = 0;
  lock();
  memory = choice();
  if (memory == 0) {
    result = -12;
    goto out;
  }
  interrupt = choice();
  if (interrupt == 0) {
    result = -16;
    goto free_memory;
  }
  clock = choice();
  if (clock == 0) {
    result = -5;
    goto free_interrupt;
  }
  unlock();
  return 0;

free_interrupt:
  interrupt = 0;
free_memory:
  memory = 0;
#if MISSING
  return result;
#endif
out:
  unlock();
  return result;
}

OPAQUE int main(void) { return probe() ? 1 : 0; }
