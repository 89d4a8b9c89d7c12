/* strncpy writes no terminator where the text fills the buffer; strlen then reads on behind it. */
#include "memory.h"

size_t volatile length;

void program(void) {
  char *from = malloc(8), *to = malloc(4);
  if (!from || !to)
    return;
  memset(from, 'x', 7);
  from[7] = 0;
  from[input() & 7] = 0;
  strncpy(to, from, 4);
  if (!BUG)
    to[3] = 0;
  length = strlen(to);
  free(to);
  free(from);
}
