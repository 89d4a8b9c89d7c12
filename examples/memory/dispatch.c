/* A table of functions and an index one too large; what lies behind the table is no function. */
#include "memory.h"

unsigned volatile state;

OPAQUE static void stop(void) { state = 0; }
OPAQUE static void start(void) { state = 1; }
OPAQUE static void pause(void) { state = 2; }

static struct {
  void (*actions[3])(void);
  unsigned limit;
} volatile table = {{stop, start, pause}, 3};

void program(void) {
  unsigned command = input();
  if (BUG ? command <= 3 : command < 3)
    table.actions[command]();
}
