/* Two blocks from a small allocator, which may refuse. Blocks handed out never overlap, so that filling one leaves the
   other as it was. */
#include "fig10.h"

static byte pool[64];
static unsigned used;

static int *allocate(unsigned bytes) {
  unsigned start = used;
  bytes = (bytes + 3) & ~3u;
  if (bytes > sizeof pool - start)
    return 0;
  used = start + bytes;
  return (int *)(void *)(pool + start);
}

static void fill(int *block, unsigned count, int value) {
  unsigned i;
  for (i = 0; i < count; i++)
    block[i] = value;
}

void program(void) {
  unsigned count = (unsigned)choice() & 15;
  int *guard, *block;
  guard = allocate(sizeof(int));
  if (guard == 0)
    return;
  *guard = 77;
  block = allocate(count * sizeof(int));
  if (block == 0)
    return;
  fill(block, count, choice());
  if (*guard != 77)
    reached();
}
