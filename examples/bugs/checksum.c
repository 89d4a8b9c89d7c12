/* A packet of four bytes whose checksum must fit. */
#include "frame.h"

static OPAQUE unsigned crc(const byte *data, int length) {
  unsigned value = 0xff;
  for (int i = 0; i < length; i++) {
    value ^= data[i];
    for (int bit = 0; bit < 8; bit++)
      value = value & 0x80 ? (value << 1 ^ 0x31) & 0xff : value << 1 & 0xff;
  }
  return value;
}

void program(void) {
  byte packet[4];
  for (int i = 0; i < 4; i++)
    packet[i] = (byte)input();
  if (packet[0] != 0x7e || packet[1] != 2)
    return;
  if (crc(packet, 3) != packet[3])
    return;
  /* Different last bytes give different checksums. */
  byte other[3] = {0x7e, 2, 0x99};
  if (BUG ? packet[2] == 0x99 : packet[2] != 0x99 && crc(other, 3) == packet[3])
    reached();
}
