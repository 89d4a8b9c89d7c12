/* A copy loop whose bound lies behind the array it fills: the fourth element overwrites the bound, later ones the
   state and, with a large bound, the frame and the return address. */
#include "fig10.h"

static int copies(void) {
  struct {
    int values[3];
    signed char last;
    int padding;
    signed char state;
  } record;
  int i;
  record.last = 3;
  record.state = 7;
  for (i = 0; i <= record.last; i++)
    record.values[i] = choice();
  if (record.state == 8)
    return 1;
  return 0;
}

void program(void) {
  if (copies() == 1)
    reached();
}
