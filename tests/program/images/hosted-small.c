/* A program of a C library that is proved in no time: a block on the heap, and what its arguments have to do with it. */
#include <stdlib.h>

int main(int argc, char **argv) {
    int *cells = malloc(8);
    (void)argv;
    if (cells == NULL) return 1;
    cells[argc & 1] = argc;
    free(cells);
    return 0;
}
