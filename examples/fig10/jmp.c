/* A non-local jump: `leap` gives up the frames of the functions between it and the place `mark` remembered, so that the
   next return does not belong to the latest call. */
#include "fig10.h"

#define UNUSED __attribute__((unused))

struct place {
  unsigned ebx, esi, edi, ebp, esp, eip;
};

static struct place place;

__attribute__((naked, noinline, returns_twice)) static int mark(UNUSED struct place *to) {
  __asm__("movl 4(%esp), %edx\n\t"
          "movl %ebx, (%edx)\n\t"
          "movl %esi, 4(%edx)\n\t"
          "movl %edi, 8(%edx)\n\t"
          "movl %ebp, 12(%edx)\n\t"
          "leal 4(%esp), %ecx\n\t"
          "movl %ecx, 16(%edx)\n\t"
          "movl (%esp), %ecx\n\t"
          "movl %ecx, 20(%edx)\n\t"
          "xorl %eax, %eax\n\t"
          "ret");
}

__attribute__((naked, noinline)) static void leap(UNUSED struct place *to, UNUSED int value) {
  __asm__("movl 4(%esp), %edx\n\t"
          "movl 8(%esp), %eax\n\t"
          "movl (%edx), %ebx\n\t"
          "movl 4(%edx), %esi\n\t"
          "movl 8(%edx), %edi\n\t"
          "movl 12(%edx), %ebp\n\t"
          "movl 16(%edx), %esp\n\t"
          "jmp *20(%edx)");
}

static void inner(int value) {
  leap(&place, value | 1);
  reached();
}

void program(void) {
  int value = choice();
  if (mark(&place) == 0)
    inner(value);
}
