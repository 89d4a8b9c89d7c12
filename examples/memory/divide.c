/* The mean of a list that may be empty. */
#include "memory.h"

unsigned volatile mean;

void program(void) {
  unsigned count = input() & 15, sum = 0;
  for (unsigned i = 0; i < count; i++)
    sum += input();
  if (BUG || count)
    mean = sum / count;
}
