/* Loops over arrays of integers, the kind compilers turn into vector instructions: sums, extremes, comparisons,
   shifts, selections, permutations, changes of width. Every result goes into one number. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;

#define NOINLINE __attribute__((noinline))
#define COUNT 35
#define EACH for (int i = 0; i < n; i++)

volatile u64 result;
static u64 digest;
static u32 seed = 12345;

static u32 next(void) {
  seed = seed * 1103515245u + 12345u;
  return seed >> 8 ^ seed << 9;
}

static void mix(u64 x) {
  digest = (digest ^ x) * 0x9E3779B97F4A7C15ull;
  digest ^= digest >> 29;
}

#define KERNELS(T, WIDE)                                                                                               \
  static T a_##T[COUNT], b_##T[COUNT], c_##T[COUNT];                                                                   \
  NOINLINE WIDE sum_##T(const T *a, int n) { WIDE s = 0; EACH s += a[i]; return s; }                                   \
  NOINLINE WIDE dot_##T(const T *a, const T *b, int n) { WIDE s = 0; EACH s += (WIDE)a[i] * b[i]; return s; }          \
  NOINLINE T max_##T(const T *a, int n) { T m = a[0]; EACH m = a[i] > m ? a[i] : m; return m; }                        \
  NOINLINE T min_##T(const T *a, int n) { T m = a[0]; EACH m = a[i] < m ? a[i] : m; return m; }                        \
  NOINLINE int equal_##T(const T *a, T x, int n) { int k = 0; EACH k += a[i] == x; return k; }                         \
  NOINLINE int less_##T(const T *a, const T *b, int n) { int k = 0; EACH k += a[i] < b[i]; return k; }                 \
  NOINLINE WIDE apart_##T(const T *a, const T *b, int n) {                                                             \
    WIDE s = 0;                                                                                                        \
    EACH s += a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];                                                                 \
    return s;                                                                                                          \
  }                                                                                                                    \
  NOINLINE void product_##T(T *restrict c, const T *a, const T *b, int n) { EACH c[i] += a[i] * b[i]; }                \
  NOINLINE void choose_##T(T *restrict c, const T *a, const T *b, int n) { EACH c[i] = a[i] > b[i] ? a[i] : c[i]; }    \
  NOINLINE void blend_##T(T *restrict c, const T *a, const T *b, int n) {                                              \
    EACH c[i] = (a[i] & c[i]) | (b[i] & ~c[i]);                                                                        \
  }                                                                                                                    \
  NOINLINE void left_##T(T *restrict c, const T *a, const T *b, int n) { EACH c[i] = a[i] << (b[i] & 7); }             \
  NOINLINE void right_##T(T *restrict c, const T *a, const T *b, int n) { EACH c[i] = a[i] >> (b[i] & 7); }            \
  NOINLINE void reverse_##T(T *restrict c, const T *a, int n) { EACH c[i] = a[n - 1 - i]; }                            \
  NOINLINE void pairs_##T(T *restrict c, const T *a, int n) {                                                          \
    for (int i = 0; i < n / 2; i++)                                                                                    \
      c[i] = a[2 * i] + a[2 * i + 1];                                                                                  \
  }                                                                                                                    \
  NOINLINE void shuffle_##T(T *restrict c, const T *a, int n) {                                                        \
    for (int i = 0; i < n / 3; i++) {                                                                                  \
      c[3 * i] = a[3 * i + 2];                                                                                         \
      c[3 * i + 1] = a[3 * i + 1] + 1;                                                                                 \
      c[3 * i + 2] = a[3 * i];                                                                                         \
    }                                                                                                                  \
  }                                                                                                                    \
  NOINLINE void seventh_##T(T *restrict c, const T *a, int n) { EACH c[i] = a[i] / 7; }                                \
  NOINLINE void average_##T(T *restrict c, const T *a, const T *b, int n) {                                            \
    EACH c[i] = (T)(((WIDE)a[i] + (WIDE)b[i] + 1) >> 1);                                                               \
  }                                                                                                                    \
  NOINLINE void limit_##T(T *restrict c, const T *a, const T *b, int n) {                                              \
    EACH {                                                                                                             \
      WIDE s = (WIDE)a[i] + (WIDE)b[i];                                                                                \
      c[i] = s > 100 ? 100 : (T)s;                                                                                     \
    }                                                                                                                  \
  }                                                                                                                    \
  static void all_##T(void) {                                                                                          \
    for (int i = 0; i < COUNT; i++)                                                                                    \
      mix((u64)c_##T[i]);                                                                                              \
  }                                                                                                                    \
  NOINLINE void run_##T(int n) {                                                                                       \
    T *a = a_##T, *b = b_##T, *c = c_##T;                                                                              \
    for (int i = 0; i < COUNT; i++) {                                                                                  \
      a[i] = (T)next();                                                                                                \
      b[i] = i % 5 ? (T)next() : a[i];                                                                                 \
      c[i] = (T)next();                                                                                                \
    }                                                                                                                  \
    mix(sum_##T(a, n)), mix(dot_##T(a, b, n)), mix(max_##T(a, n)), mix(min_##T(a, n)), mix(equal_##T(a, a[3], n));     \
    mix(less_##T(a, b, n)), mix(apart_##T(a, b, n));                                                                   \
    product_##T(c, a, b, n), all_##T(), choose_##T(c, a, b, n), all_##T(), blend_##T(c, a, b, n), all_##T();           \
    left_##T(c, a, b, n), all_##T(), right_##T(c, a, b, n), all_##T(), reverse_##T(c, a, n), all_##T();                \
    pairs_##T(c, a, n), all_##T(), shuffle_##T(c, a, n), all_##T(), seventh_##T(c, a, n), all_##T();                   \
    average_##T(c, a, b, n), all_##T(), limit_##T(c, a, b, n), all_##T();                                              \
  }
KERNELS(u8, u32)
KERNELS(s16, s32)
KERNELS(u32, u64)
KERNELS(s64, s64)

#define WIDTHS(FROM, TO)                                                                                               \
  NOINLINE void FROM##_to_##TO(TO *restrict c, const FROM *a, const FROM *b, int n) {                                  \
    EACH c[i] += (TO)((TO)a[i] * (TO)b[i]);                                                                            \
  }
WIDTHS(u8, s16)
WIDTHS(u8, u32)
WIDTHS(s16, u8)
WIDTHS(s16, s64)
WIDTHS(u32, s64)
WIDTHS(s64, s16)

NOINLINE void compute(int n) {
  run_u8(n), run_s16(n), run_u32(n), run_s64(n);
  u8_to_s16(c_s16, a_u8, b_u8, n), all_s16();
  u8_to_u32(c_u32, a_u8, b_u8, n), all_u32();
  s16_to_u8(c_u8, a_s16, b_s16, n), all_u8();
  s16_to_s64(c_s64, a_s16, b_s16, n), all_s64();
  u32_to_s64(c_s64, a_u32, b_u32, n), all_s64();
  s64_to_s16(c_s16, a_s64, b_s64, n), all_s16();
}

NOINLINE void halt(void) {
  for (;;)
    __asm__ volatile("");
}

void _start(void) {
  compute(COUNT);
  compute(9);
  result = digest;
  halt();
}
