/* Two loops, the second as long as the first, whose length is an input byte. */
#include "fig10.h"

void program(void) {
  unsigned length = (unsigned)choice() & 0xff;
  unsigned first = 0, second = 0;
  while (first < length)
    first++;
  while (second < first)
    second++;
  if (second == COUNT)
    reached();
}
