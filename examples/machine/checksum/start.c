/* Start: the machine begins at _start with a stack, stores the result and stops at halt. */
#include "checksum.h"

NOINLINE void halt(void) {
  for (;;)
    __asm__ volatile("");
}

void _start(void) {
  result = (u32)compute();
  halt();
}
