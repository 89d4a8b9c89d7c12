/* One small program for every machine: calls, data, pointers to code and data, a jump table, zero-filled data. */
typedef int (*operation)(int, int);

extern int nondet(void);
int common_cell;
static int hidden[4] = {10, 20, 30, 40};
int table[4] = {1, 2, 3, 4};
int zero[16];
int *pointer = &table[2];
const char text[] = "read-only text";
const char *text_pointer = text + 5;

__attribute__((noinline)) int add(int a, int b) { return a + b + zero[a & 7]; }
__attribute__((noinline)) static int sub(int a, int b) { return a - b + hidden[b & 3]; }
operation operations[2] = {add, sub};

__attribute__((noinline)) int choose(int which, int a) {
  switch (which) {
    case 0: return a + common_cell;
    case 1: return add(a, 7);
    case 2: return sub(a, *pointer);
    case 3: return a * text_pointer[a & 3];
    case 4: return table[a & 3];
    case 5: return operations[a & 1](a, 3);
    default: return -1;
  }
}

#ifdef STANDALONE
int nondet(void) { return 4; }
#endif

void _start(void) {
  zero[3] = choose(nondet(), nondet());
  common_cell = zero[3];
  for (;;) {
  }
}
