/* A serial port is opened: the page of its buffer is allocated outside the lock. With BUG, a second opener that finds
   the buffer there releases a lock it does not hold. */
#include "air.h"

static byte buffer[16];
static byte *page;
static word users;

static __attribute__((noinline)) byte *allocate(void) { return choice() ? buffer : 0; }

__attribute__((noinline)) int open_port(void) {
  byte *fresh = allocate();
  if (fresh == 0)
    return -1;
#if BUG
  if (page == 0)
#endif
    spin_lock();
  if (page == 0)
    page = fresh;
  users++;
  spin_unlock();
  return 0;
}

void program(void) {
  open_port();
  open_port();
}
