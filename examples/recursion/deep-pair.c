/* Two functions that call each other move one number into the other, one at a time. */
#include "frame.h"

static OPAQUE int other(int n, int m);

static OPAQUE int one(int n, int m) { return n <= 0 ? m + n : other(n - 1, m + 1) + 0 * n; }

static OPAQUE int other(int n, int m) { return n <= 0 ? m + n : one(n - 1, m + (BUG && m == 7 ? 0 : 1)); }

void program(void) {
  int n = input(), m = input();
  must((unsigned)one(n, m) == (unsigned)n + (unsigned)m);
}
