/* A device is added to a list unless it is there already. With BUG, the way out that found it there does not release
   the lock. */
#include "air.h"

static word devices[8];
static word count;

static __attribute__((noinline)) int find(word id) {
  word at;
  for (at = 0; at < count; at++)
    if (devices[at & 7] == id)
      return 1;
  return 0;
}

__attribute__((noinline)) void add(word id) {
  spin_lock();
  if (find(id)) {
#if !BUG
    spin_unlock();
#endif
    return;
  }
  if (count < 8) {
    devices[count & 7] = id;
    count++;
  }
  spin_unlock();
}

void program(void) {
  word id = (word)choice();
  add(id);
  add((word)choice());
}
