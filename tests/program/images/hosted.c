/* A program of a C library: a block on the heap, the standard input, an argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    char line[16];
    char *name = malloc(8);
    if (name == NULL || fgets(line, sizeof line, stdin) == NULL) return 1;
    strcpy(name, "anybody");
    if (argc > 1) strcpy(name, argv[1]);
    printf("%s: %s\n", name, line);
    free(name);
    return 0;
}
