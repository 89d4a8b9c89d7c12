/* One program, the same result on every machine: exercises integer arithmetic of every width, memory, and control,
   and folds everything it computes into one 32-bit value. No library, no floating point, no undefined behaviour. */
#include "checksum.h"

u32 result;

/* What the optimiser may not know. */
static volatile u32 seed = 0x2545f491u;
static volatile u8 table_index = 3;

static u32 state;

static void mix(u32 value) {
  state ^= value;
  state = (state << 13) | (state >> 19);
  state = state * 5u + 0xe6546b64u;
}

static void mix64(u64 value) {
  mix((u32)value);
  mix((u32)(value >> 32));
}

static u32 next_random(void) {
  u32 x = seed;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  seed = x;
  return x;
}

NOINLINE static void narrow_arithmetic(void) {
  for (int i = 0; i < 16; i++) {
    u32 r = next_random();
    u8 a = (u8)r, b = (u8)(r >> 8);
    u16 c = (u16)(r >> 16), d = (u16)(r >> 4);
    s8 sa = (s8)a, sb = (s8)b;
    s16 sc = (s16)c, sd = (s16)d;
    mix((u8)(a + b) | (u32)(u8)(a - b) << 8 | (u32)(u8)(a * b) << 16);
    mix((u16)(c + d) | (u32)(u16)(c * (u32)d) << 16);
    mix((u32)(sa * sb) + (u32)(sc * sd));
    mix((u32)(sa / (sb | 1)) ^ (u32)(sc % (sd | 1)));
    mix((u32)(a / (b | 1)) ^ (u32)(c % (d | 1)));
    mix((u32)(sa >> 3) ^ (u32)(sc >> 5) ^ (u32)(a >> 3));
    mix((sa < sb) | (a < b) << 1 | (sc <= sd) << 2 | (c <= d) << 3 | (sa == sb) << 4 | (c > d) << 5);
  }
}

NOINLINE static void word_arithmetic(void) {
  for (u32 i = 0; i < 16; i++) {
    u32 a = next_random(), b = next_random();
    s32 sa = (s32)a, sb = (s32)b;
    u32 n = i & 31;
    mix(a + b);
    mix(a - b);
    mix(a * b);
    mix(a / (b | 1));
    mix(a % (b | 1));
    mix((u32)(sa / ((sb >> 20) | 1)));
    mix((u32)(sa % ((sb >> 12) | 1)));
    mix(a << n);
    mix(b >> n);
    mix((u32)(sa >> n));
    mix((a << n) | (a >> ((32 - n) & 31)));
    mix((sa < sb) | (a < b) << 1 | (sa >= sb) << 2 | (a >= b) << 3);
    mix(sa < 0 ? 0u - a : a);
  }
}

NOINLINE static void long_arithmetic(void) {
  for (u32 i = 0; i < 16; i++) {
    u64 a = (u64)next_random() << 32 | next_random();
    u64 b = (u64)next_random() << (i & 15) | 1;
    s64 sa = (s64)a, sb = (s64)(b << (i * 2));
    u32 n = (i * 7 & 63) | 1;
    mix64(a + b);
    mix64(a - b);
    mix64(a * b);
    mix64(a / b);
    mix64(a % b);
    mix64((u64)(sa / (sb | 1)));
    mix64((u64)(sa % (sb | 1)));
    mix64(a << n);
    mix64(a >> n);
    mix64((u64)(sa >> n));
    mix64(a << n | a >> (64 - n));
    mix((sa < sb) | (a < b) << 1 | (sa > 0) << 2 | (a == b) << 3);
  }
}

struct item {
  u8 tag;
  u16 weight;
  u32 key;
  u64 total;
  s8 name[5];
};

static struct item items[8];

NOINLINE static void sort_items(struct item *list, int count) {
  for (int i = 1; i < count; i++) {
    struct item moving = list[i];
    int j = i;
    while (j > 0 && list[j - 1].key > moving.key) {
      list[j] = list[j - 1];
      j--;
    }
    list[j] = moving;
  }
}

NOINLINE static void structures(void) {
  for (u32 i = 0; i < 8; i++) {
    u32 r = next_random();
    items[i].tag = (u8)r;
    items[i].weight = (u16)(r >> 8);
    items[i].key = r * 2654435761u;
    items[i].total = (u64)r * r;
    for (u32 k = 0; k < 5; k++)
      items[i].name[k] = (s8)(r >> (k * 4));
  }
  sort_items(items, 8);
  for (u32 i = 0; i < 8; i++) {
    mix(items[i].tag);
    mix(items[i].weight);
    mix(items[i].key);
    mix64(items[i].total);
    for (u32 k = 0; k < 5; k++)
      mix((u32)items[i].name[k]);
  }
}

NOINLINE static u32 ackermann(u32 m, u32 n) {
  if (m == 0)
    return n + 1;
  if (n == 0)
    return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

NOINLINE static u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static u32 op_add(u32 a, u32 b) { return a + b; }
static u32 op_sub(u32 a, u32 b) { return a - b; }
static u32 op_xor(u32 a, u32 b) { return a ^ b; }
static u32 op_mul(u32 a, u32 b) { return a * b; }

typedef u32 (*operation)(u32, u32);
static operation const operations[4] = {op_add, op_sub, op_xor, op_mul};

NOINLINE static u32 dispatch(u32 kind, u32 x) {
  switch (kind) {
  case 0: return x + 17;
  case 1: return x ^ 0x55aa55aau;
  case 2: return x * 3;
  case 3: return ~x;
  case 4: return x >> 7;
  case 5: return x << 9;
  case 6: return 0u - x;
  case 7: return byte_swap32(x);
  case 9: return x & 0x0f0f0f0fu;
  case 12: return x | 0x80000001u;
  default: return x - kind;
  }
}

NOINLINE static void control(void) {
  mix(ackermann(2, 3));
  mix(fibonacci(10));
  u32 x = next_random();
  for (u32 i = 0; i < 15; i++) {
    x = dispatch(i, x);
    mix(x);
    x = operations[(x + table_index) & 3](x, i + 1);
    mix(x);
  }
}

NOINLINE static u32 text_length(const char *s) {
  const char *p = s;
  while (*p)
    p++;
  return (u32)(p - s);
}

NOINLINE static void text_copy(char *to, const char *from) {
  while ((*to++ = *from++) != 0) {
  }
}

NOINLINE static int text_compare(const char *a, const char *b) {
  while (*a && *a == *b) {
    a++;
    b++;
  }
  return (int)(u8)*a - (int)(u8)*b;
}

NOINLINE static u32 parse_decimal(const char *s) {
  u32 value = 0;
  while (*s >= '0' && *s <= '9')
    value = value * 10 + (u32)(*s++ - '0');
  return value;
}

NOINLINE static void strings(void) {
  char buffer[40];
  static const char *const words[4] = {"directed", "proof", "generation", "4294967291"};
  u32 at = 0;
  for (u32 i = 0; i < 4; i++) {
    text_copy(buffer + at, words[i]);
    at += text_length(words[i]);
  }
  mix(at);
  for (u32 i = 0; i < at / 2; i++) {
    char c = buffer[i];
    buffer[i] = buffer[at - 1 - i];
    buffer[at - 1 - i] = c;
  }
  for (u32 i = 0; i < at; i++)
    mix((u8)buffer[i]);
  for (u32 i = 0; i < 4; i++)
    mix((u32)text_compare(words[i], words[(i + 1) & 3]));
  mix(parse_decimal(words[3]));
}

NOINLINE static void bit_tricks(void) {
  for (u32 i = 0; i < 12; i++) {
    u32 x = next_random() >> (i * 2);
    u32 count = x - ((x >> 1) & 0x55555555u);
    count = (count & 0x33333333u) + ((count >> 2) & 0x33333333u);
    count = (((count + (count >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24;
    mix(count);
    mix(x & (0u - x));
    mix(x & (x - 1));
    mix(x ? (u32)__builtin_clz(x) : 32u);
    mix(x ? (u32)__builtin_ctz(x) : 32u);
    mix(byte_swap32(x));
    mix(byte_swap16((u16)x));
    u32 crc = x;
    for (int k = 0; k < 8; k++)
      crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    mix(crc);
    /* The representation of a word in memory is the machine's own; assemble it from bytes to be independent of it. */
    u8 bytes[4] = {(u8)x, (u8)(x >> 8), (u8)(x >> 16), (u8)(x >> 24)};
    mix((u32)bytes[3] | (u32)bytes[2] << 8 | (u32)bytes[1] << 16 | (u32)bytes[0] << 24);
  }
}

NOINLINE int compute(void) {
  state = 0x12345678u;
  narrow_arithmetic();
  word_arithmetic();
  long_arithmetic();
  structures();
  control();
  strings();
  bit_tricks();
  return (int)state;
}
