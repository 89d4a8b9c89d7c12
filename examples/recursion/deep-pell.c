/* Pell's numbers grow like powers and have no polynomial; computed like this, the last one takes 20,000 calls. */
#include "frame.h"

static OPAQUE unsigned pell(unsigned n) {
  if (n < 2)
    return n;
  return 2 * pell(n - 1) + pell(n - 2);
}

void program(void) {
  unsigned n = input();
  if (n > 20)
    return;
  unsigned found = pell(n);
  must(BUG ? found != 985 : found <= 15994428);
}
