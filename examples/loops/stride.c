/* A counter that changes its stride on the way, long after any run that one would follow. */
#include "loops.h"

#if SAFE
#define CHANGE 0x3000u
#define END 0x100000u
#else
#define CHANGE 0x11u
#define END 0x20u
#endif

void program(void) {
  unsigned x = 0;
  while (x < END)
    x += x < CHANGE ? 1 : 4;
  require(x % 4 == 0);
}
