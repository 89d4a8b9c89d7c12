/* Library functions by name only: the spec binds each to its model. Weak, so that no compiler looks into them. */
#include "memory.h"

#define KEPT __attribute__((noinline, weak))

KEPT void *malloc(size_t n) { return (void *)n; }
KEPT void *realloc(void *p, size_t n) { return n ? p : 0; }
KEPT void free(void *p) { (void)p; }
KEPT void *memcpy(void *to, const void *from, size_t n) { return n ? to : (void *)from; }
KEPT void *memset(void *to, int c, size_t n) { return n ? to : (void *)(size_t)c; }
KEPT char *strncpy(char *to, const char *from, size_t n) { return n ? to : (char *)from; }
KEPT size_t strlen(const char *s) { return s ? 0 : 1; }
