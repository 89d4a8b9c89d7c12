/* Eleven moves through a maze; in one twin the door is walled up. */
#include "frame.h"

static const char maze[6][8] = {
    "#######", "#s#   #", "# # # #", "#   # #", "#####d#", "#######",
};

void program(void) {
  unsigned row = 1, column = 1;
  for (int move = 0; move < 11; move++) {
    unsigned r = row, c = column;
    switch (input() & 3) {
    case 0:
      r--;
      break;
    case 1:
      r++;
      break;
    case 2:
      c--;
      break;
    default:
      c++;
    }
    if (maze[r][c] == '#')
      return;
    if (maze[r][c] == 'd') {
      if (BUG)
        reached();
      return;
    }
    row = r;
    column = c;
  }
  must(row < 5);
}
