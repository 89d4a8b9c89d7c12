/* The frame around every driver: entry, end, and locks that know whether they are held. The functions are weak so that
   no compiler looks into them. */
#include "air.h"

#define OPAQUE __attribute__((noinline, weak))

int held;
word interrupts = 1;

OPAQUE int choice(void) { return 0; }

OPAQUE void reached(void) {}

OPAQUE void halt(void) {
  for (;;)
    __asm__ volatile("");
}

OPAQUE void spin_lock(void) {
  if (held)
    reached();
  held = 1;
}

OPAQUE void spin_unlock(void) {
  if (!held)
    reached();
  held = 0;
}

OPAQUE void spin_lock_irq(void) {
  interrupts = 0;
  spin_lock();
}

OPAQUE void spin_unlock_irq(void) {
  spin_unlock();
  interrupts = 1;
}

OPAQUE word spin_lock_irqsave(void) {
  word flags = interrupts;
  interrupts = 0;
  spin_lock();
  return flags;
}

OPAQUE void spin_unlock_irqrestore(word flags) {
  spin_unlock();
  interrupts = flags;
}

void _start(void) {
  program();
  spin_lock(); /* somebody else needs the lock, too */
  spin_unlock();
  halt();
}
