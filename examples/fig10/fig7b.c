/* The hard way to the target is a dead end, the easy way leads there: bar1 returns 100 after a complicated loop, bar2
   returns 10. */
#include "fig10.h"

static unsigned noise;

static void complicated(void) {
  unsigned i;
  for (i = 0; i < 4; i++)
    noise = (noise ^ (noise << 3)) + (unsigned)choice() * 5;
}

static int bar1(void) {
  int i, r = 0;
  for (i = 0; i < 100; i++) {
    complicated();
    r++;
  }
  return r;
}

static int bar2(void) { return 10; }

void program(void) {
  int y;
  if (choice() == 0)
    y = bar2();
  else
    y = bar1();
  if (y == 10)
    reached();
}
