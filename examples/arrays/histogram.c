/* Counting inputs by their last two bits: the counts add up; the flawed one counts one class in the wrong cell. */
#include "frame.h"

#define N 5

static byte counts[4];

void program(void) {
  unsigned last = 0;
  for (int i = 0; i < N; i++) {
    unsigned value = input();
    counts[value & 3]++;
    if (BUG && (value & 0xff) == 0xa7)
      counts[2]++;
    last = value & 3;
  }
  must(counts[0] + counts[1] + counts[2] + counts[3] == N);
  must(counts[last] != 0);
}
