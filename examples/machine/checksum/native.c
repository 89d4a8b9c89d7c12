/* The same computation as a Linux program for the host: writes the result as eight hexadecimal digits and a newline
   to standard output. Running it is how the expected result is known. */
#include "checksum.h"

static long system_call(long number, long a, long b, long c) {
  long value;
  __asm__ volatile("syscall" : "=a"(value) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return value;
}

__attribute__((used)) static void run(void) {
  char text[9];
  result = (u32)compute();
  for (int i = 0; i < 8; i++)
    text[i] = "0123456789abcdef"[result >> (28 - 4 * i) & 15];
  text[8] = '\n';
  system_call(1, 1, (long)text, 9);
  system_call(60, 0, 0, 0);
}

__attribute__((naked)) void _start(void) { __asm__("andq $-16, %rsp\n\tcall run"); }
