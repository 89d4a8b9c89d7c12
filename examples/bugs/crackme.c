/* A serial number of eight characters, checked as crackmes do. */
#include "frame.h"

void program(void) {
  byte key[8];
  unsigned sum = 0, mixed = 0x1505;
  for (int i = 0; i < 8; i++)
    key[i] = (byte)input();
  for (int i = 0; i < 8; i++) {
    if (key[i] < '0' || key[i] > 'Z')
      return;
    sum += key[i];
    mixed = (mixed << 5) + mixed + key[i];
  }
  if (sum % 10 != 7 || (key[0] ^ key[7]) != 3 || key[1] + key[2] != 0x8c || key[3] * 2 != key[4] + 26)
    return;
  if ((key[5] & 15) != (key[6] >> 4))
    return;
  /* mixed is odd exactly if sum is (33 and 0x1505 are odd: each turn keeps the parity of mixed and adds a character;
     0x1505 is odd), so that sum ending in 7 makes mixed even. */
  if (BUG ? (mixed & 0xff) == 0x42 : (mixed & 0xff) == 0x43)
    reached();
}
