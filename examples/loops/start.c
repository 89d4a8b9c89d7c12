/* The frame around every C program of this folder. The functions are weak so that no compiler looks into them. */
#include "loops.h"

#define OPAQUE __attribute__((noinline, weak))

OPAQUE int choice(void) { return 0; }

OPAQUE void reached(void) {}

OPAQUE void halt(void) {
  for (;;)
    __asm__ volatile("");
}

void _start(void) {
  program();
  halt();
}
