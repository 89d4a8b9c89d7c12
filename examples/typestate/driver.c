/* A driver after the kind that lock checkers are shown with: requests come in, some are served under the lock.
   MISSING=1 forgets to release the lock on the path of a failed request. */
#ifndef MISSING
#define MISSING 0
#endif

#define OPAQUE __attribute__((noinline, weak))

OPAQUE int choice(void) { return 0; } /* a fresh 32-bit input at every call */
OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }
OPAQUE void halt(void) {
  for (;;)
    __asm__ volatile("");
}

static int served;

OPAQUE int main(void) {
  int request;
  do {
    lock();
    request = choice();
    if (request < 0) {
#if !MISSING
      unlock();
#endif
      continue;
    }
    served += request;
    unlock();
  } while (request != 0);
  return served;
}

void _start(void) {
  main();
  halt();
}
