/* The element before the chosen one, of a block of the heap; the first has none. */
#include "memory.h"

void program(void) {
  char *text = malloc(16);
  if (!text)
    return;
  unsigned end = input();
  if (end <= 16 && (BUG || end > 0))
    text[end - 1] = 0;
  free(text);
}
