/* A password is compared character by character; a counter of tries must run out first. */
#include "frame.h"

static const char secret[] = "mcveto7";

static OPAQUE int matches(void) {
  unsigned i = 0;
  while (secret[i]) {
    if ((byte)input() != (byte)secret[i])
      return 0;
    i++;
  }
  return 1;
}

void program(void) {
  int open = 0, tries = 0;
  while (!open && tries < 2) {
    tries++;
    if (matches())
      open = BUG ? tries == 2 : tries == 3;
  }
  if (open)
    reached();
}
