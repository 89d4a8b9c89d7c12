/* A copy into a local buffer with a length that somebody else chose. */
#include "memory.h"

char volatile source[64];

OPAQUE void receive(unsigned length) {
  char volatile buffer[16];
  for (unsigned i = 0; i < length; i++)
    buffer[i] = source[i];
}

void program(void) {
  unsigned length = input();
  if (length <= (BUG ? 64 : 16))
    receive(length);
}
