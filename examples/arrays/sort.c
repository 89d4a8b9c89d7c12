/* Insertion sort of four bytes; the flawed one stops one place too early. */
#include "frame.h"

#define N 4

static OPAQUE void sort(byte *cells) {
  for (int i = 1; i < N; i++) {
    byte moved = cells[i];
    int at = i;
    while (at > BUG && cells[at - 1] > moved) {
      cells[at] = cells[at - 1];
      at--;
    }
    cells[at] = moved;
  }
}

void program(void) {
  byte cells[N];
  for (int i = 0; i < N; i++)
    cells[i] = (byte)input();
  sort(cells);
  for (int i = 1; i < N; i++)
    must(cells[i - 1] <= cells[i]);
}
