/* A device's commands, all under the lock; one gives it up for a while, one ends without it. MISSING=1 has command 3
   keep it, MISSING=2 also has command 5 release it twice. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int registers[4];

OPAQUE int control(unsigned command, int value) {
  int result = 0;
  lock();
  switch (command) {
  case 0:
    registers[0] = value;
    break;
  case 1:
    registers[1] = value + 1;
    break;
  case 2:
    if (value < 0) {
      result = -22;
      goto out;
    }
    registers[2] = value;
    break;
  case 3:
    result = registers[3];
#if MISSING
    return result;
#else
    break;
#endif
  case 4:
    unlock();
    result = choice();
    lock();
    break;
  case 5:
    unlock();
#if MISSING == 2
    break;
#else
    return 1;
#endif
  case 6:
    registers[3] = registers[0] + registers[1];
    break;
  default:
    result = -25;
  }
out:
  unlock();
  return result;
}

OPAQUE int main(void) {
  unsigned command = choice();
  control(command, choice());
  return 0;
}
