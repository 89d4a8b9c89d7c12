/* A login that must read the password file before it changes the user. SKIP=1 trusts a cached answer. */
#include "start.h"

OPAQUE int open(const char *path) {
  __asm__ volatile("" ::"r"(path));
  return 3;
}

OPAQUE void setresuid(int real, int effective, int saved) {
  __asm__ volatile("" ::"r"(real), "r"(effective), "r"(saved));
}

OPAQUE int main(void) {
  const char *path = "/etc/passwd";
  int cached = choice();
  if (cached == 3)
#if SKIP
    path = "/etc/passw_";
#else
    path = "/etc/passwd";
#endif
  open(path);
  setresuid(1000, 1000, 1000);
  return 0;
}
