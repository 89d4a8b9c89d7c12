/* An indirect function: which implementation it is, code decides at start-up. */
volatile int which;
static int one(void) { return 1; }
static int two(void) { return 2; }
static void *resolve(void) { return which ? (void *)one : (void *)two; }
__attribute__((ifunc("resolve"))) int indirect(void);
void _start(void) {
  indirect();
  for (;;) {
  }
}
