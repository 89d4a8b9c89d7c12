/* Fixed-width types and byte swapping shared by the sources of this example. */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#define NOINLINE __attribute__((noinline))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef signed short s16;
typedef signed int s32;
typedef signed long long s64;

extern u32 result;
int compute(void);

static inline u32 byte_swap32(u32 x) {
  return x >> 24 | (x >> 8 & 0xff00u) | (x << 8 & 0xff0000u) | x << 24;
}
static inline u16 byte_swap16(u16 x) { return (u16)(x >> 8 | x << 8); }

#endif
