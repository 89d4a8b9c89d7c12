/* A loop that fills a block of the heap goes one element too far. */
#include "memory.h"

void program(void) {
  unsigned *cells = malloc(6 * sizeof *cells);
  if (!cells)
    return;
  for (unsigned i = 0; BUG ? i <= 6 : i < 6; i++)
    cells[i] = input();
  free(cells);
}
