/* Two conditions free the same block; they exclude each other only in one of the twins. */
#include "memory.h"

void program(void) {
  char *block = malloc(12);
  if (!block)
    return;
  unsigned flags = input();
  if (flags & 1)
    free(block);
  if (BUG ? flags & 2 : !(flags & 1))
    free(block);
}
