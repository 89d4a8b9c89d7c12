/* After a copy of unknown length, the two arrays agree as far as it went. */
#include "frame.h"

static int from[500], to[500];

void program(void) {
  int n = input();
  if (n < 0 || n > 500)
    return;
  for (int i = 0; i < n; i++)
    from[i] = input();
  for (int i = 0; i < n - BUG; i++)
    to[i] = from[i];
  for (int k = 0; k < n; k++)
    must(to[k] == from[k]);
}
