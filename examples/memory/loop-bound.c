/* A loop bound from outside is limited by the wrong number: that of the elements of another array. */
#include "memory.h"

short volatile samples[64];

OPAQUE int average(unsigned count) {
  int volatile recent[12];
  int sum = 0;
  for (unsigned i = 0; i < count; i++)
    recent[i] = samples[i];
  for (unsigned i = 0; i < count; i++)
    sum += recent[i];
  return sum;
}

int volatile result;

void program(void) {
  unsigned count = input();
  if (count > (BUG ? 64 : 12))
    return;
  result = average(count);
}
