/* The towers of Hanoi with up to six discs take one move less than a power of two. */
#include "frame.h"

static unsigned moves;

static OPAQUE void move(unsigned discs, unsigned from, unsigned to) {
  if (discs == 0)
    return;
  move(discs - 1, from, 3 - from - to);
  if (!(BUG && discs == 4 && from == 2))
    moves++;
  move(discs - 1, 3 - from - to, to);
}

void program(void) {
  unsigned discs = input() % 7;
  move(discs, 0, 2);
  must(moves + 1 == 1u << discs);
}
