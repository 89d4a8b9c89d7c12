/* Eight locks, each taken on a condition and released on the same one. */
#include "loops.h"

#define TAKE(n) int c##n = choice(), l##n = 0; if (c##n) l##n = 1
#define GIVE(n) if (c##n) { require(l##n == 1); l##n = 0; }

void program(void) {
  while (choice()) {
    TAKE(1); TAKE(2); TAKE(3); TAKE(4); TAKE(5); TAKE(6); TAKE(7); TAKE(8);
#if !SAFE
    if (c3 == 3 && c7 == 4)
      l8 = 0;
#endif
    GIVE(1) GIVE(2) GIVE(3) GIVE(4) GIVE(5) GIVE(6) GIVE(7) GIVE(8)
  }
}
