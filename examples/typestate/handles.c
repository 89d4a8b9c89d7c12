/* Two files are opened, one of them is closed, one is read. WRONG=1 reads the first one whichever was closed. */
#include "start.h"

static int next_handle = 3;

OPAQUE int open(const char *path) {
  __asm__ volatile("" ::"r"(path));
  return next_handle++;
}

OPAQUE void close(int handle) { __asm__ volatile("" ::"r"(handle)); }

OPAQUE int read(int handle) {
  __asm__ volatile("" ::"r"(handle));
  return 0;
}

OPAQUE int main(void) {
  int first = open("first"), second = open("second");
  int closes_first = choice() == 7;
  close(closes_first ? first : second);
#if WRONG
  read(first);
#else
  read(closes_first ? second : first);
#endif
  return 0;
}
