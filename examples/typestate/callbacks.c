/* A state machine whose states are functions in a table. MISSING=1 goes back to the first state without releasing the
   lock if request 7 comes in the last one. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

enum { IDLE, RUNNING, STOPPING };
static int state;

OPAQUE void idle(int request) {
  if (request == 1) {
    lock();
    state = RUNNING;
  }
}

OPAQUE void running(int request) {
  if (request == 2) {
    state = STOPPING;
  } else if (request == 3) {
    unlock();
    state = IDLE;
  }
}

OPAQUE void stopping(int request) {
#if MISSING
  if (request == 7) {
    state = IDLE;
    return;
  }
#else
  (void)request;
#endif
  unlock();
  state = IDLE;
}

static void (*const states[])(int) = {idle, running, stopping};

OPAQUE int main(void) {
  for (int turn = 0; turn < 5; turn++)
    states[state](choice());
  if (state != IDLE)
    unlock();
  return 0;
}
