/* Every cell up to a length that an input decides holds a function of its index. */
#include "frame.h"

static unsigned cells[1000];

void program(void) {
  unsigned n = input();
  if (n > 1000)
    return;
  for (unsigned i = 0; i < n; i++)
    cells[i] = BUG && i == 5 ? 23 : 3 * i + 7;
  for (unsigned k = 0; k < n; k++)
    must(cells[k] == 3 * k + 7);
}
