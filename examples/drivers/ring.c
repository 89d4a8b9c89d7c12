/* A ring buffer of four cells between an interrupt and a reader; the flawed one takes one character too many. */
#include "frame.h"

static byte cells[4];
static unsigned used, first;

void program(void) {
  for (int event = 0; event < 8; event++) {
    if (input() & 1) {
      if (used < (BUG ? 5u : 4u)) {
        cells[(first + used) & 3] = (byte)(event + 1);
        used++;
      }
    } else if (used) {
      must(cells[first] != 0);
      cells[first] = 0;
      first = (first + 1) & 3;
      used--;
    }
  }
  must(used <= 4);
}
