/* A text that is sometimes a constant is changed in place. */
#include "memory.h"

static const char fixed[8] = "default";
static char own[8];

void program(void) {
  unsigned choice = input();
  char volatile *text = choice == 42 ? (char *)fixed : own;
  if (BUG || choice != 42)
    text[0] = 'D';
}
