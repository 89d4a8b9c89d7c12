/* A synchronous line sends frames while there is room. The lock is released around each frame; the loop counts rooms
   down. With BUG, a frame of length zero skips taking the lock back. */
#include "air.h"

static word sent;

static __attribute__((noinline)) void send_frame(word length) { sent += length; }

__attribute__((noinline)) void transmit(word rooms) {
  spin_lock();
  while (rooms != 0) {
    word length = (word)choice() & 0xff;
    rooms--;
    spin_unlock();
#if BUG
    if (length == 0)
      continue;
#endif
    send_frame(length);
    spin_lock();
  }
  spin_unlock();
}

void program(void) { transmit((word)choice() & 0xf); }
