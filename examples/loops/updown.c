/* One loop counts up, the next one down again. */
#include "loops.h"

void program(void) {
  unsigned end = (unsigned)choice() & 0xffff, x = 0, y = 0;
  while (x < end) {
    x++;
    y += 2;
  }
  while (x > 0) {
    x--;
    y -= SAFE ? 2 : 2 + (x == 5);
  }
  require(y == 0);
}
