/* A nonlinear guard: with x below 9 and y below 10, x * y - x * x reaches 20 at most, so that x is never incremented
   and stays a valid index. */
#include "fig10.h"

static int cells[20];

void program(void) {
  int x = choice(), y = choice();
  if (x < 0 || y < 0 || x >= 9 || y >= 10)
    return;
  if (x * y - x * x >= 50)
    x = x + 1;
  if (x >= 9)
    reached();
  cells[x] = 1;
}
