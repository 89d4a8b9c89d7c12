/* The sleeping barber with four customers. A customer occupies a seat when a barber is free, and leaves when the door
   opens; the barber goes through four stages. */
#include "fig10.h"

static void arrive(unsigned *seat, unsigned *barbers, unsigned *chairs) {
  if (*seat == 0 && *barbers >= 1) {
    *barbers = *barbers - 1;
    *chairs = *chairs + 1;
    *seat = 1;
  }
}

static void leave(unsigned *seat, unsigned *open) {
  if (*seat == 1 && *open >= 1) {
    *open = *open - 1;
    *seat = 0;
  }
}

void program(void) {
  unsigned barbers = 0, chairs = 0, open = 0, stage = 0;
  unsigned first = 0, second = 0, third = 0, fourth = 0;
  while (choice() & 1) {
    if (choice() & 1)
      arrive(&first, &barbers, &chairs);
    else if (choice() & 1)
      leave(&first, &open);
    else if (choice() & 1)
      arrive(&second, &barbers, &chairs);
    else if (choice() & 1)
      leave(&second, &open);
    else if (choice() & 1)
      arrive(&third, &barbers, &chairs);
    else if (choice() & 1)
      leave(&third, &open);
    else if (choice() & 1)
      arrive(&fourth, &barbers, &chairs);
    else if (choice() & 1)
      leave(&fourth, &open);
    else if (stage == 0) {
      barbers = barbers + 1;
      stage = 1;
    } else if (stage == 1 && chairs >= 1) {
      chairs = chairs - 1;
      stage = 2;
    } else if (stage == 2) {
      open = open + 1;
      stage = 3;
    } else if (stage == 3 && open == 0)
      stage = 0;
  }
  if (stage < open || first > 1 || second > 1 || third > 1 || fourth > 1 || stage > 3)
    reached();
}
