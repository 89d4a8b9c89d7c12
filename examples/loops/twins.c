/* Two counters that move together, as often as the inputs say. */
#include "loops.h"

void program(void) {
  int x = 0, y = 0;
  while (choice()) {
    x++;
#if !SAFE
    if (choice() == 12345)
      continue;
#endif
    y++;
  }
  require(x == y);
}
