/* What the programs of this folder share. */
#ifndef START_H
#define START_H

#define OPAQUE __attribute__((noinline, weak))

int choice(void); /* a fresh 32-bit input at every call */
int main(void);

#endif
