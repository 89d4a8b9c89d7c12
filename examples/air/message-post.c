/* A message is posted to a board that may answer at once; the answer is handled under the same lock. With BUG, the
   handler takes the lock itself. */
#include "air.h"

static word posted, answered;

static __attribute__((noinline)) void answer(word tag) {
#if BUG
  spin_lock();
#endif
  answered = tag;
#if BUG
  spin_unlock();
#endif
}

__attribute__((noinline)) void post(word tag) {
  word flags = spin_lock_irqsave();
  posted = tag;
  if (choice() & 1)
    answer(tag);
  spin_unlock_irqrestore(flags);
}

void program(void) {
  post((word)choice());
  post(posted + 1);
}
