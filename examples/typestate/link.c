/* A state machine in a loop without end: it is left by request 99, or after some ROUNDS. Compilers know that there are
   no other states, and may jump through a table without looking. MISSING=1 forgets to release the lock when it is done with sending. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

enum { OFF, IDLE, RECEIVING, SENDING, FAILED };

OPAQUE int main(void) {
  int state = OFF;
#ifdef ROUNDS
  int turns = 0;
#endif
  for (;;) {
    int event = choice();
#ifdef ROUNDS
    if (++turns > ROUNDS)
      break;
#else
    if (event == 99)
      break;
#endif
    switch (state) {
    case OFF:
      if (event == 1)
        state = IDLE;
      break;
    case IDLE:
      if (event == 2) {
        lock();
        state = RECEIVING;
      } else if (event == 3) {
        lock();
        state = SENDING;
      } else if (event == 0) {
        state = OFF;
      }
      break;
    case RECEIVING:
      if (event == 4) {
        unlock();
        state = IDLE;
      } else if (event == 9) {
        state = FAILED;
      }
      break;
    case SENDING:
      if (event == 5) {
#if !MISSING
        unlock();
#endif
        state = IDLE;
      } else if (event == 9) {
        state = FAILED;
      }
      break;
    case FAILED:
      unlock();
      state = OFF;
      break;
    }
  }
  if (state == RECEIVING || state == SENDING || state == FAILED)
    unlock();
  return 0;
}
