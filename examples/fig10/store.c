/* A store through a symbolic index into 4,096 cells. It can set the cell that is looked at (REACH 1), but not the
   neighbour of the array (REACH 0). */
#include "fig10.h"

static struct {
  byte before[4];
  byte cells[4096];
  byte after[4];
} area;

void program(void) {
  unsigned index = (unsigned)choice() & 4095;
  area.cells[index] = 1;
#if REACH
  if (area.cells[1234] != 0)
    reached();
#else
  if (area.before[3] != 0 || area.after[0] != 0)
    reached();
#endif
}
