/* A storage array is reset: depending on the mode, the caller already holds the lock. With BUG, the mode is compared
   with a signed and with an unsigned relation. */
#include "air.h"

static int state;

static __attribute__((noinline)) void reset(int mode) {
  if (mode < 16)
    spin_lock();
  state = mode;
#if BUG
  if ((word)mode < 16u)
#else
  if (mode < 16)
#endif
    spin_unlock();
}

void program(void) { reset(choice()); }
