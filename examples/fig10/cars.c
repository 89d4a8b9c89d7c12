/* Three cars; the middle one accelerates or brakes to stay between the others. The numbers are of type NUMBER: with
   unsigned ones the guard of the loop, -5 <= v2 && v2 <= 5, cannot be passed; with signed ones at most eleven steps
   move the cars. */
#include "fig10.h"

struct cars {
  NUMBER x1, v1, x2, v2, x3, v3, t;
};

static void brake(struct cars *c) {
  c->x1 = c->x1 + c->v1;
  c->x2 = c->x2 + c->v2;
  c->x3 = c->x3 + c->v3;
  c->v2 = c->v2 - 1;
  c->t = c->t + 1;
}

static void accelerate(struct cars *c) {
  c->x1 = c->x1 + c->v1;
  c->x2 = c->x2 + c->v2;
  c->x3 = c->x3 + c->v3;
  c->v2 = c->v2 + 1;
  c->t = c->t + 1;
}

static int sensible(struct cars *c) {
  return c->v3 >= 0 && c->v1 <= 5 && c->v1 - c->v3 >= 0 && 2 * c->v2 - c->v1 - c->v3 == 0 &&
         c->v2 + 5 >= 0 && c->v2 <= 5;
}

void program(void) {
  struct cars c;
  c.x1 = 100;
  c.x2 = 75;
  c.x3 = (NUMBER)-50;
  c.t = 0;
  c.v1 = (NUMBER)choice();
  c.v2 = (NUMBER)choice();
  c.v3 = (NUMBER)choice();
  if (!sensible(&c))
    return;
  while (choice() & 1) {
    if ((NUMBER)-5 <= c.v2 && c.v2 <= 5) {
      if (2 * c.x2 - c.x1 - c.x3 >= 0)
        brake(&c);
      else
        accelerate(&c);
    }
  }
  if (c.v1 > 5 || 2 * c.v2 + 2 * c.t < c.v1 + c.v3 || 5 * c.t + 75 < c.x2 || c.v2 > 6 || c.v3 < 0 ||
      c.v2 + 6 < 0 || c.x2 + 5 * c.t < 75 || c.v1 - 2 * c.v2 + c.v3 + 2 * c.t < 0 ||
      c.v1 - c.v3 < 0)
    reached();
}
