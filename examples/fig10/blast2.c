/* Two phases of locking. In the first a counter remembers whether the lock was taken; in the second the loop ends
   exactly when the lock is still held. The target is a double lock or a double unlock. */
#include "fig10.h"

static int held;

static void lock(void) {
  if (held)
    reached();
  held = 1;
}

static void unlock(void) {
  if (!held)
    reached();
  held = 0;
}

void program(void) {
  unsigned taken, seen, current = (unsigned)choice();
  if (choice()) {
    do {
      taken = 0;
      if (choice()) {
        lock();
        taken++;
      }
      if (taken)
        unlock();
    } while (choice());
  }
  do {
    lock();
    seen = current;
    if (choice()) {
      unlock();
      current++;
    }
  } while (current != seen);
  unlock();
}
