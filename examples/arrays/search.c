/* Binary search in a sorted table; the flawed one never looks at the last entry. */
#include "frame.h"

static const unsigned table[8] = {2, 3, 5, 7, 11, 13, 17, 19};

static OPAQUE int search(unsigned wanted) {
  unsigned low = 0, high = BUG ? 7 : 8;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (table[middle] == wanted)
      return (int)middle;
    if (table[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return -1;
}

void program(void) {
  unsigned wanted = input();
  int found = search(wanted);
  if (found >= 0) {
    must(table[found] == wanted);
  } else {
    for (int i = 0; i < 8; i++)
      must(table[i] != wanted);
  }
}
