/* A block is made smaller, but the old size is still used. */
#include "memory.h"

void program(void) {
  unsigned size = 16;
  char *block = malloc(size);
  if (!block)
    return;
  if (input() & 1) {
    char *smaller = realloc(block, 8);
    if (!smaller) {
      free(block);
      return;
    }
    block = smaller;
    if (!BUG)
      size = 8;
  }
  unsigned at = input();
  if (at < size)
    block[at] = 1;
  free(block);
}
