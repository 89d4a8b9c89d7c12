/* A lock with a flaw: three input bytes, one combination of which opens it. */

/* Input: the spec makes every call return a fresh byte; this body never runs (weak: the
   compiler may not look into it). */
__attribute__((noinline, weak)) unsigned char read_byte(void) { return 0; }

__attribute__((noinline)) void bad(void) { __asm__ volatile(""); }

__attribute__((noinline)) void halt(void) {
  for (;;)
    __asm__ volatile("");
}

void _start(void) {
  unsigned code = 0;
  for (int i = 0; i < 3; i++)
    code = code * 31 + read_byte();
  if (code == 100000)
    bad();
  halt();
}
