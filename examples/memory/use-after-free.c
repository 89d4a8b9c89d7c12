/* An early error path frees the block, and the code behind it does not notice. */
#include "memory.h"

struct request {
  unsigned kind, length;
};

unsigned volatile total;

void program(void) {
  struct request *request = malloc(sizeof *request);
  if (!request)
    return;
  request->kind = input();
  request->length = 4;
  if (request->kind > 9) {
    free(request);
    if (!BUG)
      return;
  }
  total += request->length;
  if (request->kind <= 9)
    free(request);
}
