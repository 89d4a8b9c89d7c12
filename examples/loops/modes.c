/* A protocol of four modes with a counter that only two of them change. */
#include "loops.h"

void program(void) {
  int mode = 0, open = 0;
  while (choice()) {
    switch (mode) {
    case 0:
      open++;
      mode = 1;
      break;
    case 1:
      mode = choice() ? 2 : 3;
      break;
    case 2:
      open--;
      mode = 0;
      break;
    default:
#if SAFE
      mode = 2;
#else
      mode = choice() ? 2 : 0;
#endif
    }
    require(open >= 0 && open <= 1);
  }
}
