/* The maximum of six inputs is not less than any of them; the flawed one does not look at the last. */
#include "frame.h"

#define N 6

void program(void) {
  int cells[N];
  for (int i = 0; i < N; i++)
    cells[i] = (int)input();
  int maximum = cells[0];
  for (int i = 1; i < N - BUG; i++)
    if (cells[i] > maximum)
      maximum = cells[i];
  for (int i = 0; i < N; i++)
    must(cells[i] <= maximum);
}
