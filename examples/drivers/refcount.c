/* An object lives while it is referenced; in the flawed one a failed open keeps no reference but gives one back. */
#include "frame.h"

static unsigned references;
static int alive;

static OPAQUE void put(void) {
  must(alive);
  references--;
  if (references == 0)
    alive = 0;
}

void program(void) {
  alive = 1;
  references = 1;
  unsigned opened = 0;
  for (;;) {
    unsigned request = input() & 3;
    if (request == 0)
      break;
    if (request == 1 && opened < 3) {
      references++;
      opened++;
      if ((input() & 0xf) == 9) {
        put();
        if (!BUG)
          opened--;
      }
    } else if (request == 2 && opened) {
      opened--;
      put();
    }
  }
  while (opened) {
    opened--;
    put();
  }
  must(alive && references == 1);
}
