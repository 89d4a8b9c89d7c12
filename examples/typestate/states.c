/* A state machine that is driven by requests; compilers make a table of its states. MISSING=1 goes back to the first
   state without releasing the lock if request 2 comes when the work is done. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

enum { IDLE, ARMED, BUSY, DONE, FAILED };

OPAQUE int step(int state, int request) {
  switch (state) {
  case IDLE:
    if (request == 1) {
      lock();
      return ARMED;
    }
    return IDLE;
  case ARMED:
    if (request == 0) {
      unlock();
      return IDLE;
    }
    return request == 2 ? BUSY : ARMED;
  case BUSY:
    return request == 3 ? FAILED : DONE;
  case DONE:
#if MISSING
    if (request == 2)
      return IDLE;
#endif
    unlock();
    return IDLE;
  case FAILED:
    unlock();
    return IDLE;
  }
  return state;
}

OPAQUE int main(void) {
  int state = IDLE;
  for (int turn = 0; turn < 4; turn++)
    state = step(state, choice() & 3);
  if (state != IDLE)
    unlock();
  return 0;
}
