/* Steps of two or four never reach an odd number; a step of three does. */
#include "loops.h"

void program(void) {
  unsigned x = 6;
  while (choice()) {
    if (choice())
      x += 2;
    else
      x += SAFE ? 4 : 3;
  }
  require((x & 1) == 0);
}
