/* A device must be awake and configured when it is accessed; waking it up loses its configuration. */
#include "frame.h"

static int awake, configured;

static OPAQUE void access(void) { must(awake && configured); }

void program(void) {
  for (;;) {
    unsigned request = input() & 0xff;
    if (request == 0xff)
      return;
    if (request < 0x20) {
      awake = 0;
    } else if (request < 0x40) {
      if (!awake) {
        awake = 1;
        configured = 0;
      }
    } else if (request < 0x60) {
      if (awake)
        configured = 1;
    } else if (BUG ? configured && (awake || request == 0x80) : awake && configured) {
      access();
    }
  }
}
