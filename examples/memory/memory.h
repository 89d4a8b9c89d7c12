/* What the programs of this folder share: an input and the library functions that the spec binds to models. Each is
   built twice, with BUG=0 and BUG=1; the difference is marked by BUG in the source. */
#ifndef MEMORY_H
#define MEMORY_H

#define OPAQUE __attribute__((noinline))

typedef __SIZE_TYPE__ size_t;

unsigned input(void); /* a fresh 32-bit value at every call */
void program(void);   /* called once; when it returns, the run ends */

void *malloc(size_t);
void *realloc(void *, size_t);
void free(void *);
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
char *strncpy(char *, const char *, size_t);
size_t strlen(const char *);

#endif
