/* A lock taken and released by the inputs, never twice. */
#include "loops.h"

static int held;

static void take(void) {
  require(!held);
  held = 1;
}

static void give(void) {
  require(held);
  held = 0;
}

void program(void) {
  int mine = 0;
  while (choice()) {
    if (!mine && choice()) {
      take();
      mine = 1;
    }
    if (mine && choice()) {
      give();
#if SAFE
      mine = 0;
#else
      mine = choice() == 77;
#endif
    }
  }
}
