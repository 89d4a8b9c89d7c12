/* A network protocol as counters of processes per state (X1 may be any positive number) and three mode flags of which
   exactly one is set at first. */
#include "fig10.h"

static void move(unsigned *permission, unsigned *from, unsigned *to) {
  if (*from >= 1 && *permission >= 1) {
    *from = *from - 1;
    *to = *to + 1;
  }
}

static void recover(unsigned *from, unsigned *to, unsigned *gains, unsigned *loses) {
  if (*from >= 1) {
    *from = *from - 1;
    *to = *to + 1;
    *gains = *gains + *loses;
    *loses = 0;
  }
}

void program(void) {
  unsigned x1 = (unsigned)choice(), x2 = 0, x3 = 0, x4 = 1, x5 = 0, x6 = 0;
  if (x1 < 1)
    return;
  while (choice() & 1) {
    if (x1 >= 1 && x4 >= 1 && (choice() & 1)) {
      x1 = x1 - 1;
      x4 = x4 - 1;
      x2 = x2 + 1;
      x5 = x5 + 1;
    } else if (choice() & 1)
      move(&x6, &x2, &x3);
    else if (choice() & 1)
      move(&x4, &x3, &x2);
    else if (choice() & 1)
      recover(&x3, &x1, &x6, &x5);
    else
      recover(&x2, &x1, &x4, &x6);
  }
  if (x4 + x5 + x6 != 1 || x4 + x5 > 1 || x1 + x5 < 1 || x1 + x2 < x4 + x5 || x1 + x2 + x3 < 1)
    reached();
}
