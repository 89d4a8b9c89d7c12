/* Reversing an array in place; the flawed one swaps back again behind the middle. */
#include "frame.h"

#define N 6

static unsigned before[N], after[N];

void program(void) {
  for (int i = 0; i < N; i++)
    before[i] = after[i] = input();
  int end = BUG ? N / 2 + 1 : N / 2;
  for (int i = 0; i < end; i++) {
    unsigned kept = after[i];
    after[i] = after[N - 1 - i];
    after[N - 1 - i] = kept;
  }
  for (int i = 0; i < N; i++)
    must(after[i] == before[N - 1 - i]);
}
