/* A value that inputs push around stays within its bounds. */
#include "loops.h"

void program(void) {
  int value = 50;
  while (choice()) {
    int push = choice();
    if (push > 0 && push < 10)
      value += push;
    else if (push < 0 && push > -10)
      value -= -push;
    if (value > 100)
      value = 100;
    if (value < (SAFE ? 0 : -2))
      value = 0;
  }
  require(value >= 0 && value <= 100);
}
