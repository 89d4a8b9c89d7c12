/* A device's control function: the commands share one way out, which releases the lock. MISSING=1 has one command leave
   by another way, MISSING=2 two of them. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int level;

OPAQUE int control(int command, int value) {
  int result = 0;
  lock();
  if (command == 1) {
    if (value < 0) {
      result = -22;
      goto out;
    }
    level = value;
  } else if (command == 2) {
#if MISSING
    if (value > 100)
      return -22;
#endif
    level += value;
  } else if (command == 3) {
#if MISSING == 2
    if (level == 9)
      return -16;
#endif
    result = level;
  } else {
    result = -25;
  }
out:
  unlock();
  return result;
}

OPAQUE int main(void) {
  int command = choice();
  return control(command, choice());
}
