/* The Berkeley cache-coherence protocol as counters of cache lines per state. A write miss takes over every line; with
   FIXED it counts them before it forgets them, without it the total grows by one, which a total of 2^31 - 1 does not
   survive. */
#include "fig10.h"

struct lines {
  int invalid, unowned, nonexclusive, exclusive;
};

static void read_miss(struct lines *l) {
  if (l->invalid < 1)
    return;
  l->nonexclusive = l->nonexclusive + l->exclusive;
  l->exclusive = 0;
  l->invalid = l->invalid - 1;
  l->unowned = l->unowned + 1;
}

static void write_hit(struct lines *l) {
  if (l->nonexclusive + l->unowned < 1)
    return;
  l->invalid = l->invalid + l->unowned + l->nonexclusive - 1;
  l->exclusive = l->exclusive + 1;
  l->unowned = 0;
  l->nonexclusive = 0;
}

static void write_miss(struct lines *l) {
  if (l->invalid < 1)
    return;
#if FIXED
  l->invalid = l->invalid + l->unowned + l->exclusive + l->nonexclusive - 1;
  l->exclusive = 1;
#else
  l->exclusive = 1;
  l->invalid = l->invalid + l->exclusive - 1;
#endif
  l->unowned = 0;
  l->nonexclusive = 0;
}

void program(void) {
  struct lines l;
  l.invalid = choice();
  l.unowned = l.nonexclusive = l.exclusive = 0;
  if (l.invalid < 1)
    return;
  while (choice() & 1) {
    if (choice() & 1)
      read_miss(&l);
    else if (choice() & 1)
      write_hit(&l);
    else
      write_miss(&l);
  }
  if (l.exclusive < 0 || l.unowned < 0 || l.invalid + l.unowned + l.exclusive + l.nonexclusive < 1)
    reached();
}
