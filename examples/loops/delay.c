/* What is sent was received two turns before and then had no two neighbouring bits. Nothing of this is said in one state:
   it takes three turns to see that all that is sent was received. */
#include "loops.h"

void program(void) {
  unsigned sent = 0, second = 0, third = 0;
  while (choice()) {
    unsigned bits = (unsigned)choice();
#if SAFE
    require((sent & (sent << 1)) == 0);
#else
    require((sent & (sent << 2)) == 0);
#endif
    sent = second;
    second = third;
    third = bits & ~(bits << 1);
  }
}
