/* Many calls of one procedure that leaves the global at zero. */
#include "fig10.h"

static int y;

static void baz(void) {
  y = 0;
  y = y + 1;
  y = y - 1;
}

void program(void) {
  int a = choice();
  y = 0;
  if (a > 0)
    baz();
  if (a > 1)
    baz();
  if (a > 2)
    baz();
  if (a > 3)
    baz();
  if (y != 0)
    reached();
}
