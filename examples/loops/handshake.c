/* A protocol engine: a state, a state to go on with after a flush, and a flag that follows what was sent. */
#include "loops.h"

enum { HELLO = 0x1100, CERTIFICATE = 0x1110, KEY = 0x1120, REQUEST = 0x1130, DONE = 0x1140, FLUSH = 0x1150,
       VERIFY = 0x1160, FINISH = 0x1170, END = 3 };

void program(void) {
  int state = HELLO, next, sent = 0, resumed = choice();
  for (;;) {
    if (state == HELLO) {
      if (choice() <= 0)
        return;
      sent = 1;
      state = resumed ? FINISH : CERTIFICATE;
    } else if (state == CERTIFICATE) {
      if (sent == 1)
        sent = 2;
      state = KEY;
    } else if (state == KEY) {
      if (choice() <= 0)
        return;
      state = REQUEST;
    } else if (state == REQUEST) {
      if (choice()) {
        state = FLUSH;
        next = DONE;
      } else {
        state = DONE;
      }
    } else if (state == DONE) {
      if (sent == 2)
        sent = 3;
      state = FLUSH;
      next = VERIFY;
    } else if (state == FLUSH) {
      if (choice() <= 0)
        return;
      state = next;
    } else if (state == VERIFY) {
#if SAFE
      if (sent == 4)
        sent = 5;
#else
      if (sent == 3)
        sent = 5;
#endif
      state = FINISH;
    } else if (state == FINISH) {
      require(sent != 5);
      state = resumed ? END : FLUSH;
      next = END;
    } else if (state == END) {
      return;
    } else {
      return;
    }
  }
}
