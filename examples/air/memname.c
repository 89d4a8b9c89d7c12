/* A memory manager of a small real-time system sets the name of a partition (the shape of air-powerpc, Fig. 1): with
   BUG, the first error exit forgets to return, and the second one leaves the critical section again. */
#include "air.h"

struct partition {
  void *address;
  void *free_list;
  word block_size, blocks, free_blocks;
  char name[32];
};

static struct partition partitions[2];

#define ENTER_CRITICAL spin_lock
#define EXIT_CRITICAL spin_unlock

__attribute__((noinline)) void set_name(struct partition *partition, const char *name, byte *error) {
  byte length;
  ENTER_CRITICAL();
  if (partition == 0) {
    EXIT_CRITICAL();
    *error = 116;
#if !BUG
    return;
#endif
  }
  if (name == 0) {
    EXIT_CRITICAL();
    *error = 15;
    return;
  }
  length = (byte)choice();
  if (length > 31) {
    EXIT_CRITICAL();
    *error = 119;
    return;
  }
  if (partition != 0)
    partition->name[length] = 0;
  EXIT_CRITICAL();
  *error = 0;
}

void program(void) {
  byte error = 0;
  set_name(choice() ? &partitions[1] : 0, choice() ? "pool" : 0, &error);
}
