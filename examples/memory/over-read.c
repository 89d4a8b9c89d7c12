/* A message says how long it is; more is copied than it has (as in Heartbleed). */
#include "memory.h"

void program(void) {
  unsigned char *message = malloc(8), *answer = malloc(24);
  if (!message || !answer)
    return;
  unsigned claimed = input() & 15;
  message[0] = claimed;
  if (BUG || claimed <= 7)
    memcpy(answer, message + 1, claimed);
  free(answer);
  free(message);
}
