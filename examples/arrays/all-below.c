/* The maximum of an array of unknown length: no cell is above it. */
#include "frame.h"

static int cells[300];

void program(void) {
  int n = input(), most = -1;
  if (n < 0 || n > 300)
    return;
  for (int i = 0; i < n; i++) {
    int value = input();
    cells[i] = value < 0 ? 0 : value;
    if (cells[i] > most && !(BUG && i == 3))
      most = cells[i];
  }
  for (int k = 0; k < n; k++)
    must(cells[k] <= most);
}
