/* The process ends by a system call, in one place or another; a lock must not be held then. MISSING=1 forgets to
   release it where the second request is refused. There is no library: `quit` asks the kernel itself. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

static void quit(int code) {
#if defined(__i386__)
  __asm__ volatile("int $0x80" : : "a"(1), "b"(code) : "memory");
#elif defined(__x86_64__)
  __asm__ volatile("syscall" : : "a"(231L), "D"((long)code) : "memory", "rcx", "r11");
#elif defined(__powerpc__)
  register int number __asm__("r0") = 1;
  register int first __asm__("r3") = code;
  __asm__ volatile("sc" : : "r"(number), "r"(first) : "memory");
#elif defined(__arm__)
  register int number __asm__("r7") = 248;
  register int first __asm__("r0") = code;
  __asm__ volatile("svc 0" : : "r"(number), "r"(first) : "memory");
#elif defined(__aarch64__)
  register long number __asm__("x8") = 93;
  register long first __asm__("x0") = code;
  __asm__ volatile("svc 0" : : "r"(number), "r"(first) : "memory");
#elif defined(__riscv)
  register long number __asm__("a7") = 94;
  register long first __asm__("a0") = code;
  __asm__ volatile("ecall" : : "r"(number), "r"(first) : "memory");
#elif defined(__mips__)
  register int number __asm__("$2") = 4001;
  register int first __asm__("$4") = code;
  __asm__ volatile("syscall" : : "r"(number), "r"(first) : "memory");
#endif
  for (;;)
    ;
}

OPAQUE int main(void) {
  lock();
  if (choice() == 5) {
    unlock();
    quit(1);
  }
  if (choice() == 6) {
#if !MISSING
    unlock();
#endif
    quit(2);
  }
  unlock();
  return 0;
}
