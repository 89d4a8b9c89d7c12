/* A request is pending, then completed exactly once: by its timer, by the device, or by a cancellation. */
#include "frame.h"

enum { IDLE, PENDING, DONE };

static int state;

static OPAQUE void complete(void) {
  must(state == PENDING);
  state = DONE;
}

void program(void) {
  int armed = 0;
  for (;;) {
    switch (input() & 7) {
    case 0:
      return;
    case 1:
      if (state != PENDING) {
        state = PENDING;
        armed = 1;
      }
      break;
    case 2: /* the timer */
      if (armed) {
        armed = 0;
        complete();
      }
      break;
    case 3: /* the device */
      if (state == PENDING) {
        complete();
        if (!BUG)
          armed = 0;
      }
      break;
    case 4: /* cancelled */
      if (state == PENDING && armed) {
        armed = 0;
        complete();
      }
      break;
    default:
      if (state == DONE)
        state = IDLE;
    }
  }
}
