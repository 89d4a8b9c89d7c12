/* A file name from the environment goes into the smaller path of a socket address. BAD copies until the end of the
   name, otherwise at most the size of the path less one. The byte behind the path shows an overflow. */
#include "fig10.h"

#define PATH_SIZE 16
#define NAME_SIZE 24

byte name[NAME_SIZE]; /* input, ended by the program */

struct address {
  byte path[PATH_SIZE];
  byte sentinel;
};

static struct address address;

#if BAD
static void copy_string(byte *to, const byte *from) {
  unsigned i = 0;
  while (from[i] != 0) {
    to[i] = from[i];
    i++;
  }
  to[i] = 0;
}
#else
static void copy_string_bounded(byte *to, const byte *from, unsigned count) {
  unsigned i = 0;
  while (i < count && from[i] != 0) {
    to[i] = from[i];
    i++;
  }
  while (i < count) {
    to[i] = 0;
    i++;
  }
}
#endif

void program(void) {
  address.sentinel = 0x5a;
  name[NAME_SIZE - 1] = 0;
#if BAD
  copy_string(address.path, name);
#else
  copy_string_bounded(address.path, name, PATH_SIZE - 1);
  address.path[PATH_SIZE - 1] = 0;
#endif
  if (address.sentinel != 0x5a)
    reached();
}
