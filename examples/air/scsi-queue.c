/* A SCSI adapter puts a command into its queue. Whether the queue is locked depends on one bit of the command, looked at
   twice; with BUG, the second look is at another bit. */
#include "air.h"

#define NEEDS_LOCK 4u
#define HAS_DATA 8u

struct command {
  word flags, tag, done;
};

static struct command queue[4];
static word next;

__attribute__((noinline)) int enqueue(word flags, word tag) {
  struct command *slot;
  word saved = 0;
  int result = 0;
  if (flags & NEEDS_LOCK)
    saved = spin_lock_irqsave();
  slot = &queue[next & 3];
  if (slot->done || next < 4) {
    slot->flags = flags;
    slot->tag = tag;
    slot->done = 0;
    next++;
    result = 1;
  }
#if BUG
  if (flags & HAS_DATA)
#else
  if (flags & NEEDS_LOCK)
#endif
    spin_unlock_irqrestore(saved);
  return result;
}

void program(void) {
  word flags = (word)choice();
  word tag = (word)choice();
  enqueue(flags, tag);
}
