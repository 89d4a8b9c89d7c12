/* A length from the outside counts a two-byte header. Subtracting the header makes the length of a short message
   negative, which passes the signed test and is enormous as the count of the copy. */
#include "fig10.h"

byte message[25]; /* the first 24 bytes are input, the last one ends the string */

struct record {
  byte name[8];
  int trusted;
};

static void copy_bounded(byte *to, const byte *from, unsigned count) {
  while (count != 0) {
    *to = *from;
    if (*from == 0)
      return;
    to++;
    from++;
    count--;
  }
}

static int handle(int length) {
  struct record record;
  int body = length - 2;
  record.trusted = 0;
  if (body > (int)sizeof record.name)
    return 0;
  copy_bounded(record.name, message, (unsigned)body);
  return record.trusted;
}

void program(void) {
  if (handle(choice() & 0xff))
    reached();
}
