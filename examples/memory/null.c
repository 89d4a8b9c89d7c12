/* A search that may find nothing, and a caller that does not look. */
#include "memory.h"

struct entry {
  unsigned key, value;
};

static struct entry volatile table[4] = {{3, 1}, {5, 2}, {7, 3}, {11, 4}};
unsigned volatile result;

OPAQUE struct entry volatile *find(unsigned key) {
  for (unsigned i = 0; i < 4; i++)
    if (table[i].key == key)
      return &table[i];
  return 0;
}

void program(void) {
  struct entry volatile *found = find(input());
  if (BUG || found)
    result = found->value;
}
