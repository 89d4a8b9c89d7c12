/* McCarthy's function is 91 up to 101, for any number below. */
#include "frame.h"

static OPAQUE int f(int n) { return n > 100 ? n - 10 : f(f(n + 11)); }

void program(void) {
  int n = input();
  int found = f(n);
  if (n <= (BUG ? 102 : 101))
    must(found == 91);
  else
    must(found == n - 10);
}
