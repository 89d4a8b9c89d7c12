/* The towers of Hanoi take an odd number of moves, for any number of discs (modulo 2^32). */
#include "frame.h"

static OPAQUE unsigned moves(unsigned discs) {
  if (discs <= 1)
    return 1;
  unsigned below = moves(discs - 1);
  return 2 * below + (BUG && below == 127 ? 2 : 1);
}

void program(void) { must(moves(input()) & 1); }
