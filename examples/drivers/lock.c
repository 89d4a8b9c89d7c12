/* A driver serves requests for ever; each takes the lock and gives it back, except one kind in the flawed one. */
#include "frame.h"

static int locked;

static OPAQUE void take(void) {
  must(!locked);
  locked = 1;
}

static OPAQUE void give(void) {
  must(locked);
  locked = 0;
}

void program(void) {
  for (;;) {
    unsigned request = input();
    if (request == 0)
      return;
    take();
    if (request & 1) {
      give();
      if (BUG && request == 0x77)
        continue;
      take();
    } else if (request == 0x1234) {
      if (BUG) {
        continue;
      }
    }
    give();
  }
}
