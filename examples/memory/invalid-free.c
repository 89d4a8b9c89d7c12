/* A pointer that was moved forward is no block any more. */
#include "memory.h"

void program(void) {
  char *block = malloc(8);
  if (!block)
    return;
  char *p = block;
  unsigned skip = input() & 3;
  while (skip--)
    p++;
  *p = 1;
  free(BUG ? p : block);
}
