/* The inner counter never passes the outer one, nor that its bound. */
#include "loops.h"

void program(void) {
  unsigned bound = (unsigned)choice(), i, j = 0;
  for (i = 0; i < bound; i++) {
    for (j = 0; j < i; j++)
      if (choice())
        break;
    require(j <= i);
  }
#if SAFE
  require(i == bound && j <= bound);
#else
  require(j < 3);
#endif
}
