/* Six devices with a lock each; every turn locks some of them and must unlock the same. */
#include "frame.h"

#define DEVICE(n)                                                                                                      \
  if (wanted & (1u << n))                                                                                              \
    lock##n = 1;
#define RELEASE(n)                                                                                                     \
  if (wanted & (1u << n)) {                                                                                            \
    must(lock##n);                                                                                                     \
    lock##n = 0;                                                                                                       \
  }

static int lock0, lock1, lock2, lock3, lock4, lock5;

void program(void) {
  for (;;) {
    unsigned wanted = input();
    if (wanted == 0)
      return;
    must(!lock0 && !lock1 && !lock2 && !lock3 && !lock4 && !lock5);
    DEVICE(0) DEVICE(1) DEVICE(2) DEVICE(3) DEVICE(4) DEVICE(5)
    if (BUG && (wanted & 0xff00) == 0x4200)
      wanted ^= 1;
    RELEASE(0) RELEASE(1) RELEASE(2) RELEASE(3) RELEASE(4) RELEASE(5)
  }
}
