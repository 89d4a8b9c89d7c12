/* No character of a text of unknown length is 0, so it ends where it was ended. */
#include "frame.h"

static char text[200];

void program(void) {
  unsigned n = input();
  if (n >= 200)
    return;
  for (unsigned i = 0; i < n; i++) {
    char c = input();
    text[i] = c || BUG ? c : ' ';
  }
  text[n] = 0;
  unsigned length = 0;
  while (text[length])
    length++;
  must(length == n);
}
