/* An index that is checked from above only, as a signed number. */
#include "memory.h"

int volatile counts[32];

void program(void) {
  int index = (int)input();
  if (index < 32 && (BUG || index >= 0))
    counts[index] = 1;
}
