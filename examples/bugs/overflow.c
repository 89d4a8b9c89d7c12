/* A store one cell behind an array hits its neighbour. */
#include "frame.h"

static struct {
  unsigned cells[8];
  unsigned guard;
} data;

void program(void) {
  data.guard = 0x600d;
  unsigned index = input(), value = input();
  if (index < (BUG ? 9u : 8u))
    data.cells[index] = value;
  must(data.guard == 0x600d);
}
