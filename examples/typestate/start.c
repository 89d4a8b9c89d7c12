/* The frame around the programs of this folder. The functions are weak so that no compiler looks into them. */
#include "start.h"

OPAQUE int choice(void) { return 0; }

OPAQUE void halt(void) {
  for (;;)
    __asm__ volatile("");
}

void _start(void) {
  main();
  halt();
}
