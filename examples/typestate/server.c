/* Requests are served until one is 0: 1 opens, 2 closes what is open. MISSING=1 keeps the lock if nothing is open.
   Compilers align the loop with instructions that do nothing. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static int open_count;

OPAQUE int serve(int request) {
  if (request == 1) {
    lock();
    open_count++;
    unlock();
    return 0;
  }
  if (request == 2) {
    lock();
    if (open_count == 0) {
#if !MISSING
      unlock();
#endif
      return -1;
    }
    open_count--;
    unlock();
    return 0;
  }
  return -22;
}

OPAQUE int main(void) {
  int request;
  while ((request = choice()) != 0)
    serve(request);
  return 0;
}
