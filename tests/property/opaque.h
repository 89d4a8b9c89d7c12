/* What correct and wrong programs do to their frames, out of sight of the caller. */
unsigned input(void);
typedef unsigned char byte;
#define OPAQUE __attribute__((noinline))
volatile unsigned sink;

OPAQUE void fill(byte *to, unsigned count, byte with) {
  for (unsigned i = 0; i < count; i++)
    to[i] = with;
}
OPAQUE void copy(byte *to, byte const *from, unsigned count) {
  while (count--)
    *to++ = *from++;
}
OPAQUE unsigned total(unsigned const *from, unsigned count) {
  unsigned sum = 0;
  for (unsigned i = 0; i < count; i++)
    sum += from[i];
  return sum;
}
