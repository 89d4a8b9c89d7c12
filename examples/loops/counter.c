/* Counting up to an unknown number ends there; it may be more than six. */
#include "loops.h"

void program(void) {
  unsigned end = (unsigned)choice(), i = 0;
  while (i < end) {
    i++;
    __asm__ volatile("" : "+r"(i));
  }
#if SAFE
  require(i == end);
#else
  require(i <= 6);
#endif
}
