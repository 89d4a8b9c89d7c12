/* What compilers call for 64-bit division on 32-bit machines, for division on machines without it, and for moving
   blocks; unused functions cost a few bytes each. Division is restoring shift-and-subtract. */
#include "checksum.h"

#define WEAK __attribute__((weak))

typedef __SIZE_TYPE__ size;

WEAK void *memcpy(void *to, const void *from, size count) {
  volatile u8 *t = to;
  const u8 *f = from;
  for (size i = 0; i < count; i++)
    t[i] = f[i];
  return to;
}

WEAK void *memset(void *to, int value, size count) {
  volatile u8 *t = to;
  for (size i = 0; i < count; i++)
    t[i] = (u8)value;
  return to;
}

#if __SIZEOF_POINTER__ == 4

static u64 shift_left_one(u64 x) { return x + x; }

WEAK NOINLINE u64 __udivmoddi4(u64 a, u64 b, u64 *remainder) {
  u64 quotient = 0, rest = 0;
  for (int i = 0; i < 64; i++) {
    u32 top = (u32)(a >> 32) >> 31;
    rest = shift_left_one(rest) | top;
    a = shift_left_one(a);
    quotient = shift_left_one(quotient);
    if (rest >= b) {
      rest -= b;
      quotient |= 1;
    }
  }
  *remainder = rest;
  return quotient;
}

WEAK NOINLINE s64 __divmoddi4(s64 a, s64 b, s64 *remainder) {
  u64 rest;
  u64 quotient = __udivmoddi4(a < 0 ? 0 - (u64)a : (u64)a, b < 0 ? 0 - (u64)b : (u64)b, &rest);
  *remainder = (s64)(a < 0 ? 0 - rest : rest);
  return (s64)((a < 0) != (b < 0) ? 0 - quotient : quotient);
}

#if defined(__arm__)

/* The ARM run-time ABI returns the quotient in r0:r1 and the remainder in r2:r3. */
#define DIVMOD(name, callee)                                                                                        \
  __attribute__((naked)) void name(void) {                                                                          \
    __asm__("push {r4, lr}\n\tsub sp, #16\n\tadd r4, sp, #8\n\tstr r4, [sp]\n\tbl " callee                           \
            "\n\tldr r2, [sp, #8]\n\tldr r3, [sp, #12]\n\tadd sp, #16\n\tpop {r4, pc}");                             \
  }
DIVMOD(__aeabi_uldivmod, "__udivmoddi4")
DIVMOD(__aeabi_ldivmod, "__divmoddi4")

static u64 divide32(u32 a, u32 b) {
  u32 quotient = 0, rest = 0;
  for (int i = 0; i < 32; i++) {
    rest = rest + rest + (a >> 31);
    a += a;
    quotient += quotient;
    if (rest >= b) {
      rest -= b;
      quotient |= 1;
    }
  }
  return (u64)rest << 32 | quotient;
}

/* r0 is the quotient and r1 the remainder; which half of a 64-bit result r0 is depends on the byte order. */
static u64 in_registers(u32 quotient, u32 rest) {
#ifdef __ARMEB__
  return (u64)quotient << 32 | rest;
#else
  return (u64)rest << 32 | quotient;
#endif
}

WEAK u32 __aeabi_uidiv(u32 a, u32 b) { return (u32)divide32(a, b); }
WEAK u64 __aeabi_uidivmod(u32 a, u32 b) {
  u64 both = divide32(a, b);
  return in_registers((u32)both, (u32)(both >> 32));
}
static u64 divide32_signed(s32 a, s32 b) {
  u64 both = divide32(a < 0 ? 0u - (u32)a : (u32)a, b < 0 ? 0u - (u32)b : (u32)b);
  u32 quotient = (u32)both, rest = (u32)(both >> 32);
  quotient = (a < 0) != (b < 0) ? 0u - quotient : quotient;
  rest = a < 0 ? 0u - rest : rest;
  return (u64)rest << 32 | quotient;
}
WEAK u64 __aeabi_idivmod(s32 a, s32 b) {
  u64 both = divide32_signed(a, b);
  return in_registers((u32)both, (u32)(both >> 32));
}
WEAK s32 __aeabi_idiv(s32 a, s32 b) { return (s32)divide32_signed(a, b); }
WEAK void __aeabi_memcpy(void *to, const void *from, size count) { memcpy(to, from, count); }
WEAK void __aeabi_memcpy4(void *to, const void *from, size count) { memcpy(to, from, count); }
WEAK void __aeabi_memcpy8(void *to, const void *from, size count) { memcpy(to, from, count); }
WEAK void __aeabi_memset(void *to, size count, int value) { memset(to, value, count); }
WEAK void __aeabi_memclr(void *to, size count) { memset(to, 0, count); }

#else

WEAK u64 __udivdi3(u64 a, u64 b) {
  u64 rest;
  return __udivmoddi4(a, b, &rest);
}
WEAK u64 __umoddi3(u64 a, u64 b) {
  u64 rest;
  __udivmoddi4(a, b, &rest);
  return rest;
}
WEAK s64 __divdi3(s64 a, s64 b) {
  s64 rest;
  return __divmoddi4(a, b, &rest);
}
WEAK s64 __moddi3(s64 a, s64 b) {
  s64 rest;
  __divmoddi4(a, b, &rest);
  return rest;
}

#endif
#endif
