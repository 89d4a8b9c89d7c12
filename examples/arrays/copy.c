/* A string is copied up to its end or its length; the flawed one forgets the terminator of the longest. */
#include "frame.h"

#define N 6

static OPAQUE void copy(byte *to, const byte *from, unsigned room) {
  unsigned i = 0;
  for (; i < room - (BUG ? 0 : 1) && from[i]; i++)
    to[i] = from[i];
  if (i < room)
    to[i] = 0;
}

void program(void) {
  byte from[N + 1], to[N];
  for (int i = 0; i < N; i++)
    from[i] = (byte)input();
  from[N] = 0;
  for (int i = 0; i < N; i++)
    to[i] = 0xff;
  copy(to, from, N);
  int ended = 0;
  for (int i = 0; i < N; i++)
    if (!to[i])
      ended = 1;
  must(ended);
}
