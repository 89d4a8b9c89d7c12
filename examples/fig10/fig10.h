/* What the programs of this folder share: an unknown input, the place a property speaks about, and their own entry. */
#ifndef FIG10_H
#define FIG10_H

typedef unsigned char byte;

int choice(void);   /* a fresh 32-bit input at every call */
void reached(void); /* the target */
void program(void); /* called once; when it returns, the run ends */

#endif
