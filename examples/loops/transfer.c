/* What leaves one account arrives in the other. */
#include "loops.h"

void program(void) {
  int from = choice(), to = 0, total = from;
  while (choice()) {
    int amount = choice();
    if (amount > 0 && amount <= from) {
      from -= amount;
      to += amount;
#if !SAFE
      if (amount == 1000)
        to--;
#endif
    }
  }
  require(from + to == total);
}
