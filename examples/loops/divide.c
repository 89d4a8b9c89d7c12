/* Division by seven through repeated subtraction: quotient and remainder make up the number. */
#include "loops.h"

void program(void) {
  unsigned number = (unsigned)choice(), rest = number, quotient = 0;
  while (rest >= 7) {
    rest -= 7;
    quotient++;
  }
#if SAFE
  require(7 * quotient + rest == number && rest < 7);
#else
  require(rest != 6 || quotient != 3);
#endif
}
