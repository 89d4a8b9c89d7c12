/* A total that grows faster than its counter: that it does not overflow takes a multiple of the counter as a bound. */
#include "loops.h"

void program(void) {
  int total = 1, count = 0;
  while (count < 500 && choice()) {
    total += count;
    count++;
  }
#if SAFE
  require(total >= count);
#else
  require(total > count);
#endif
}
