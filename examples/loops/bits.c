/* Counting the bits of a word: never more than thirty-two of them. */
#include "loops.h"

void program(void) {
  unsigned word = (unsigned)choice(), count = 0, i;
  for (i = 0; i < 32; i++) {
    count += word & 1;
    word >>= 1;
  }
#if SAFE
  require(count <= 32);
#else
  require(count != 17);
#endif
}
