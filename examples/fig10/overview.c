/* The running example: two ways to begin, a procedure that moves x into y, and the sum that stays 500. */
#include "fig10.h"

static void adjust(int *x, int *y) {
  while (*x > 0) {
    *x = *x - 1;
    *y = *y + 1;
  }
}

void program(void) {
  int x, y;
  if (choice() & 1) {
    x = 300;
    y = 200;
    adjust(&x, &y);
  } else {
    x = 210;
    y = 290;
    adjust(&x, &y);
  }
  if (y != 500)
    reached();
}
