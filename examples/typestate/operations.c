/* Two kinds of device behind one table of operations. MISSING=1: opening the second kind fails for request 5 with the
   lock held. */
#include "start.h"

OPAQUE void lock(void) { __asm__ volatile(""); }
OPAQUE void unlock(void) { __asm__ volatile(""); }

struct operations {
  int (*open)(int);
  int (*read)(int);
  int (*close)(int);
};

OPAQUE int disk_open(int request) {
  lock();
  return request & 255;
}
OPAQUE int disk_read(int handle) { return handle + 1; }
OPAQUE int disk_close(int handle) {
  unlock();
  return handle;
}

OPAQUE int port_open(int request) {
  lock();
  if (request == 5) {
#if !MISSING
    unlock();
#endif
    return -1;
  }
  return request & 127;
}
OPAQUE int port_read(int handle) { return handle * 2; }
OPAQUE int port_close(int handle) {
  unlock();
  return handle;
}

static const struct operations devices[] = {{disk_open, disk_read, disk_close}, {port_open, port_read, port_close}};

OPAQUE int main(void) {
  unsigned which = choice();
  if (which >= 2)
    return -1;
  const struct operations *device = &devices[which];
  int handle = device->open(choice());
  if (handle < 0)
    return -1;
  handle = device->read(handle);
  device->close(handle);
  return 0;
}
