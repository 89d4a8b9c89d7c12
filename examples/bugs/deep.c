/* The interesting input is asked for only after ten thousand turns of a loop. */
#include "frame.h"

void program(void) {
  volatile unsigned turns = 0;
  unsigned state = 1;
  while (turns < 10000) {
    turns++;
    state = state * 5 + turns;
  }
  unsigned key = input();
  /* Three times a key can be anything, an even number cannot be odd. */
  if (BUG ? key * 3 + state == 0x12345678 : key * 2 + (state & ~1u) == 0x12345679)
    reached();
}
