/* A driver's packet loop: the lock is released only where a request is handled, and then the packet count differs
   from the one remembered. The lock state travels through a pointer to the device. */
#include "fig10.h"

struct device {
  int locked;
  unsigned packets;
};

static void acquire(struct device *device) {
  if (device->locked == 1)
    reached();
  device->locked = 1;
}

static void release(struct device *device) {
  if (device->locked == 0)
    reached();
  device->locked = 0;
}

void program(void) {
  struct device device;
  unsigned before;
  device.locked = 0;
  device.packets = (unsigned)choice();
  do {
    acquire(&device);
    before = device.packets;
    if (choice() != 0) {
      release(&device);
      device.packets = device.packets + 1;
    }
  } while (before != device.packets);
  release(&device);
}
