/* Two steps through a table of 64 entries; only one pair of indices leads to the end. */
#include "frame.h"

static const byte next[64] = {
    13, 40, 7,  22, 58, 1,  35, 19, 44, 60, 3,  28, 51, 9,  30, 16, 62, 5,  47, 24, 11, 38, 55, 2,  33, 17, 49, 26, 8,  41, 0,  20,
    57, 12, 36, 29, 61, 14, 45, 6,  53, 23, 39, 10, 27, 50, 4,  18, 42, 31, 56, 15, 34, 48, 21, 37, 46, 25, 52, 43, 54, 32, 46, 25};

void program(void) {
  unsigned first = input() & 63, second = input() & 63;
  unsigned reach = next[next[first] ^ second];
  /* 63 and 59 do not occur in the table. */
  if (reach == (BUG ? 62 : 63) && next[second] == (BUG ? 61 : 59) && first > 40)
    reached();
}
