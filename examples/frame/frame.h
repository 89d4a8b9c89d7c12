/* What the programs of bugs/, arrays/, recursion/ and drivers/ share: inputs, the target, and their own entry. Each is
   built twice, with BUG=0 and BUG=1; the difference is marked by BUG in the source. */
#ifndef FRAME_H
#define FRAME_H

#define OPAQUE __attribute__((noinline))

typedef unsigned char byte;

unsigned input(void); /* a fresh 32-bit value at every call */
void reached(void);   /* the target */
void program(void);   /* called once; when it returns, the run ends */

static inline void must(int condition) {
  if (!condition)
    reached();
}

#endif
