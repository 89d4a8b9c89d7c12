/* What the programs of this folder share. Each is built twice: with SAFE=1 no input reaches the target, with SAFE=0 one
   does. */
#ifndef LOOPS_H
#define LOOPS_H

int choice(void);   /* a fresh 32-bit input at every call */
void reached(void); /* the target */
void program(void); /* called once; when it returns, the run ends */

#define require(condition)                                                                                             \
  do {                                                                                                                 \
    if (!(condition))                                                                                                  \
      reached();                                                                                                       \
  } while (0)

#endif
