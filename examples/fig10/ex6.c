/* A procedure that acts according to which of two globals it was given. */
#include "fig10.h"

static int first, second;

static void assign(int *where) {
  if (where == &first)
    *where = 0;
  if (where == &second)
    *where = 1;
}

void program(void) {
  assign(&first);
  assign(&second);
  if (first > second)
    reached();
}
