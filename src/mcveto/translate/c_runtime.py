"""The fixed part of a translation: types, operators, memory access, traps, and the two harnesses.

Compiled as it is, the C is a verification task: unspecified state and inputs come from `__VERIFIER_nondet_*`, a target
calls `reach_error`. Whatever the translation does not model calls `reach_error` as well (after setting `mc_cut`), so
that a tool cannot conclude anything from paths that were cut. With -DMC_RUN it is a program that reads an initial state
and inputs from a file, runs, and prints how and in which state the run ended.
"""

from __future__ import annotations

from mcveto.machine.faults import FaultKind

TYPES = """\
#include <stdint.h>
#include <stdlib.h>
#ifdef MC_RUN
#include <stdio.h>
#include <string.h>
#else
#include <assert.h>
#endif
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#if defined(__GNUC__) || defined(__clang__)
#define MC_UNUSED __attribute__((unused))
#else
#define MC_UNUSED
#endif
"""

WIDE_TYPES = """\
__extension__ typedef unsigned __int128 u128;
static inline MC_UNUSED u128 mc_u128(u64 high, u64 low) { return (u128)high << 64 | low; }
"""

_OPERATORS = """\
static inline MC_UNUSED uN mc_divN(uN a, uN b, uN mask) { return b ? a / b : mask; }
static inline MC_UNUSED uN mc_remN(uN a, uN b) { return b ? a % b : a; }
static inline MC_UNUSED uN mc_sdivN(uN a, uN b, uN sign, uN mask) {
  uN x = a & sign ? (0 - a) & mask : a, y = b & sign ? (0 - b) & mask : b, q;
  if (!b) return a & sign ? 1 : mask;
  q = x / y;
  return (a & sign) == (b & sign) ? q & mask : (0 - q) & mask;
}
static inline MC_UNUSED uN mc_sremN(uN a, uN b, uN sign, uN mask) {
  uN x = a & sign ? (0 - a) & mask : a, y = b & sign ? (0 - b) & mask : b, r;
  if (!b) return a;
  r = x % y;
  return a & sign ? (0 - r) & mask : r;
}
static inline MC_UNUSED u32 mc_slessN(uN a, uN b, uN sign) { return (a ^ sign) < (b ^ sign); }
static inline MC_UNUSED u32 mc_slessequalN(uN a, uN b, uN sign) { return (a ^ sign) <= (b ^ sign); }
static inline MC_UNUSED u32 mc_carryN(uN a, uN b, uN mask) { return mask - a < b; }
static inline MC_UNUSED u32 mc_scarryN(uN a, uN b, uN sign) { return ((a ^ (a + b)) & (b ^ (a + b)) & sign) != 0; }
static inline MC_UNUSED u32 mc_sborrowN(uN a, uN b, uN sign) { return ((a ^ b) & (a ^ (a - b)) & sign) != 0; }
static inline MC_UNUSED u32 mc_popcountN(uN a) {
  u32 count = 0;
  for (; a; a &= a - 1) count++;
  return count;
}
static inline MC_UNUSED u32 mc_lzcountN(uN a, u32 bits) {
  for (; a; a >>= 1) bits--;
  return bits;
}
static inline MC_UNUSED uN mc_leftN(uN a, u64 amount, u32 bits, uN mask) {
  return amount < bits ? a << amount & mask : 0;
}
static inline MC_UNUSED uN mc_rightN(uN a, u64 amount, u32 bits, uN mask) {
  return amount < bits ? a >> amount & mask : 0;
}
static inline MC_UNUSED uN mc_srightN(uN a, u64 amount, u32 bits, uN mask) {
  uN sign = (uN)1 << (bits - 1), high = a & sign ? mask : 0;
  return amount < bits ? ((a >> amount) | (high & ~(mask >> amount))) & mask : high;
}
"""


def operators(bits: int) -> str:
    """The helper functions of the operators on u<bits>."""
    return _OPERATORS.replace("N(", f"{bits}(").replace("uN", f"u{bits}")


def fault_kinds() -> str:
    names = ", ".join(f"MC_{kind.name} = {int(kind)}" for kind in FaultKind)
    labels = ", ".join(f'"{kind.label}"' for kind in FaultKind)
    return f"enum {{ {names} }};\n#ifdef MC_RUN\nstatic const char *const mc_fault_names[] = {{ {labels} }};\n#endif\n"


ENDS = """\
#ifdef MC_RUN
#define MC_FOLLOW 1
#endif
#ifdef MC_FOLLOW /* control goes where the machine goes, however deep and whatever the return addresses are */
#define MC_MAX_DEPTH 256u
#define MC_CALL(procedure) do { if (mc_depth < MC_MAX_DEPTH) { mc_depth++; procedure(); mc_depth--; } } while (0)
#define MC_LEAVE() ((void)0)
#define MC_ASTRAY() ((void)0)
static MC_UNUSED u32 mc_depth;
#else /* calls are calls of C; a return to another place than the caller is an error */
#define MC_CALL(procedure) procedure()
#define MC_LEAVE() mc_enter()
#define MC_ASTRAY() mc_astray()
#endif
#define MC_BACK(address) do { if (mc_pc != (address)) { MC_ASTRAY(); goto mc_dispatch; } } while (0)
#define MC_AT(address) (mc_at = (address))
ADDRESS mc_pc; /* the program counter, whenever control passes between procedures */
ADDRESS mc_at; /* the last instruction that could trap */
u64 mc_taken;  /* the input read last */
u64 mc_chosen; /* the unspecified register of the entry state chosen last */
void mc_enter(void);
#ifdef MC_RUN
static u32 mc_undo_count;
static ADDRESS mc_undo_at; /* whose stores the journal holds */
#define MC_BEGIN() (mc_undo_count = 0, mc_undo_at = mc_at)
static _Noreturn void mc_finish(const char *how, ADDRESS where, const char *detail);
static void mc_take_back(void);
static _Noreturn void mc_fault(int kind) {
  mc_take_back();
  mc_finish("fault", mc_at, mc_fault_names[kind]);
}
static MC_UNUSED _Noreturn void mc_unsupported(void) {
  mc_take_back();
  mc_finish("unsupported", mc_at, "");
}
static MC_UNUSED _Noreturn void mc_halt(ADDRESS pc) { mc_finish("halted", pc, ""); }
static MC_UNUSED _Noreturn void mc_target(ADDRESS pc) { mc_finish("target", pc, ""); }
static MC_UNUSED _Noreturn void mc_unknown_target(void) { mc_finish("unknown-target", mc_pc, ""); }
static MC_UNUSED _Noreturn void mc_modified(ADDRESS pc) { mc_finish("modified-code", pc, ""); }
static u64 mc_next_input(void);
static MC_UNUSED u64 mc_input(u32 source, u32 bits) {
  (void)source;
  mc_taken = mc_next_input() & (bits < 64 ? ((u64)1 << bits) - 1 : ~(u64)0);
  return mc_taken;
}
#define mc_undefined32(bits, usual) (usual)
#define mc_undefined64(bits, usual) (usual)
#define mc_undefined128(bits, usual) (usual)
#else
#define MC_BEGIN() ((void)0)
extern unsigned char __VERIFIER_nondet_uchar(void);
extern unsigned short __VERIFIER_nondet_ushort(void);
extern unsigned int __VERIFIER_nondet_uint(void);
u32 mc_cut; /* whether reach_error stands for something that is not modelled */
#ifdef MC_VERIFIER_ERROR
extern void __VERIFIER_error(void);
void reach_error(void) { __VERIFIER_error(); }
#else
void reach_error(void) { assert(0); }
#endif
static _Noreturn void mc_fault(int kind) {
  (void)kind;
  exit(0);
}
static MC_UNUSED _Noreturn void mc_halt(ADDRESS pc) {
  (void)pc;
  exit(0);
}
static MC_UNUSED _Noreturn void mc_target(ADDRESS pc) {
  mc_at = pc;
  reach_error();
  abort();
}
static MC_UNUSED _Noreturn void mc_unsupported(void) {
  mc_cut = 1;
  reach_error();
  abort();
}
static MC_UNUSED _Noreturn void mc_unknown_target(void) {
  mc_at = mc_pc;
  mc_unsupported();
}
static MC_UNUSED _Noreturn void mc_modified(ADDRESS pc) {
  mc_at = pc;
  mc_unsupported();
}
static MC_UNUSED _Noreturn void mc_astray(void) {
  mc_at = mc_pc;
  mc_unsupported();
}
static MC_UNUSED u64 mc_any(u32 bits) {
  u64 value;
  if (bits <= 8) value = __VERIFIER_nondet_uchar();
  else if (bits <= 16) value = __VERIFIER_nondet_ushort();
  else if (bits <= 32) value = __VERIFIER_nondet_uint();
  else {
    value = __VERIFIER_nondet_uint();
    value = value << 32 | __VERIFIER_nondet_uint();
  }
  return value & (bits < 64 ? ((u64)1 << bits) - 1 : ~(u64)0);
}
static MC_UNUSED u64 mc_input(u32 source, u32 bits) {
  (void)source;
  mc_taken = mc_any(bits);
  return mc_taken;
}
static MC_UNUSED u32 mc_undefined32(u32 bits, u32 usual) {
  (void)usual;
  return (u32)mc_any(bits);
}
static MC_UNUSED u64 mc_undefined64(u32 bits, u64 usual) {
  (void)usual;
  return mc_any(bits);
}
#ifdef MC_WIDE
static MC_UNUSED u128 mc_undefined128(u32 bits, u128 usual) {
  (void)usual;
  return (u128)mc_any(bits - 64) << 64 | mc_any(64);
}
#endif
#endif
"""


def ends(address_bits: int) -> str:
    return ENDS.replace("ADDRESS", f"u{address_bits}")


def accessors(sizes: frozenset[int], address_bits: int, big_endian: bool) -> str:
    """mc_load<bits>, mc_store<bits> and mc_jstore<bits> for the sizes (in bytes) that occur, on top of mc_byte."""
    address = f"u{address_bits}"
    parts: list[str] = []
    for size in sorted(sizes):
        bits = 8 * size
        kind = "u32" if size <= 4 else "u64" if size <= 8 else "u128"
        shifts = [8 * (size - 1 - at if big_endian else at) for at in range(size)]
        places = [f"a + {at}" if at else "a" for at in range(size)]
        joined = " | ".join(
            f"({kind})*mc_byte({place}, MC_READ) << {shift}" if shift else f"*mc_byte({place}, MC_READ)"
            for place, shift in zip(places, shifts, strict=True)
        )
        checks = "".join(f"  p[{at}] = mc_byte({place}, MC_WRITE);\n" for at, place in enumerate(places))
        sets = "".join(f"  *p[{at}] = (u8)(v{f' >> {shift}' if shift else ''});\n" for at, shift in enumerate(shifts))
        kept = "".join(f"  mc_keep(p[{at}]);\n" for at in range(size))
        given = f"({address} a, {kind} v)"
        parts.append(
            f"static MC_UNUSED {kind} mc_load{bits}({address} a) {{ return {joined}; }}\n"
            f"static MC_UNUSED void mc_store{bits}{given} {{\n  u8 *p[{size}];\n{checks}{sets}}}\n"
            f"#ifdef MC_RUN\n"
            f"static MC_UNUSED void mc_jstore{bits}{given} {{\n  u8 *p[{size}];\n{checks}{kept}{sets}}}\n"
            f"#else\n#define mc_jstore{bits} mc_store{bits}\n#endif\n"
        )
    return "".join(parts)


JOURNAL = """\
#ifdef MC_RUN
#define MC_MAX_UNDO 4096
static struct { u8 *place, old; } mc_undo[MC_MAX_UNDO];
static MC_UNUSED void mc_keep(u8 *place) {
  if (mc_undo_count == MC_MAX_UNDO) abort();
  mc_undo[mc_undo_count].place = place;
  mc_undo[mc_undo_count++].old = *place;
}
static void mc_take_back(void) {
  while (mc_undo_at == mc_at && mc_undo_count) {
    mc_undo_count--;
    *mc_undo[mc_undo_count].place = mc_undo[mc_undo_count].old;
  }
}
#endif
"""

RUN_HARNESS = """\
#ifdef MC_RUN
static FILE *mc_state;
static u64 mc_next_input(void) {
  unsigned long long value;
  return mc_state && fscanf(mc_state, " i %llx", &value) == 1 ? (u64)value : 0;
}
static u32 mc_crc(const u8 *bytes, size_t size) {
  u32 crc = ~(u32)0, table[256];
  for (u32 at = 0; at < 256; at++) {
    u32 entry = at;
    for (int bit = 0; bit < 8; bit++) entry = entry & 1 ? entry >> 1 ^ 0xedb88320u : entry >> 1;
    table[at] = entry;
  }
  while (size--) crc = table[(crc ^ *bytes++) & 255] ^ crc >> 8;
  return ~crc;
}
static _Noreturn void mc_finish(const char *how, ADDRESS where, const char *detail) {
  printf("%s 0x%llx %s\\n", how, (unsigned long long)where, detail);
  for (size_t at = 0; at < sizeof mc_registers / sizeof *mc_registers; at++) {
    u8 bytes[16];
    u16 probe = 1;
    printf("%s ", mc_registers[at].name);
    memcpy(bytes, mc_registers[at].place, mc_registers[at].size);
    for (u32 byte = 0; byte < mc_registers[at].size; byte++)
      printf("%02x", bytes[*(u8 *)&probe ? mc_registers[at].size - 1 - byte : byte]);
    printf("\\n");
  }
  for (size_t at = 0; at < sizeof mc_regions / sizeof *mc_regions; at++)
    printf("crc 0x%llx %08x\\n", (unsigned long long)mc_regions[at].start,
           mc_crc(mc_regions[at].bytes, mc_regions[at].size));
  fflush(stdout);
  _Exit(0);
}
static void mc_read_state(const char *path) {
  char kind, name[64];
  static char digits[1 << 17];
  unsigned long long address;
  long before;
  mc_state = fopen(path, "r");
  if (!mc_state) exit(2);
  for (;;) {
    before = ftell(mc_state);
    if (fscanf(mc_state, " %c", &kind) != 1) return;
    if (kind == 'r' && fscanf(mc_state, "%63s %131071s", name, digits) == 2) {
      for (size_t at = 0; at < sizeof mc_registers / sizeof *mc_registers; at++)
        if (!strcmp(name, mc_registers[at].name)) {
          u16 probe = 1;
          u32 size = mc_registers[at].size, digit_count = (u32)strlen(digits);
          for (u32 byte = 0; byte < size; byte++) {
            char pair[3] = {'0', '0', 0};
            u8 value;
            if (2 * byte + 1 <= digit_count) pair[1] = digits[digit_count - 1 - 2 * byte];
            if (2 * byte + 2 <= digit_count) pair[0] = digits[digit_count - 2 - 2 * byte];
            value = (u8)strtoul(pair, 0, 16);
            memcpy((u8 *)mc_registers[at].place + (*(u8 *)&probe ? byte : size - 1 - byte), &value, 1);
          }
        }
    } else if (kind == 'p' && fscanf(mc_state, "%llx", &address) == 1) {
      mc_entry = (ADDRESS)address;
    } else if (kind == 'm' && fscanf(mc_state, "%llx %131071s", &address, digits) == 2) {
      for (u32 at = 0; digits[2 * at]; at++) {
        char pair[3] = {digits[2 * at], digits[2 * at + 1], 0};
        for (size_t number = 0; number < sizeof mc_regions / sizeof *mc_regions; number++)
          if (address + at - mc_regions[number].start < mc_regions[number].size)
            mc_regions[number].bytes[address + at - mc_regions[number].start] = (u8)strtoul(pair, 0, 16);
      }
    } else {
      fseek(mc_state, before, SEEK_SET);
      return;
    }
  }
}
int main(int argc, char **argv) {
  mc_map();
  if (argc > 1) mc_read_state(argv[1]);
  mc_run();
}
#else
int main(void) {
  mc_reset();
  mc_run();
}
#endif
"""

POINTER_MAP = """\
#ifdef MC_RUN
#include <signal.h>
#include <sys/mman.h>
static void mc_segmentation(int number) {
  (void)number;
  mc_finish("fault", mc_at, "memory");
}
static void mc_map(void) {
  for (size_t at = 0; at < sizeof mc_regions / sizeof *mc_regions; at++) {
    uintptr_t low = (uintptr_t)mc_regions[at].start & ~(uintptr_t)4095;
    uintptr_t high = ((uintptr_t)mc_regions[at].start + mc_regions[at].size + 4095) & ~(uintptr_t)4095;
    void *place = mmap((void *)low, high - low, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (place != (void *)low) {
      fprintf(stderr, "cannot map memory at the addresses of the program\\n");
      exit(2);
    }
    mc_regions[at].bytes = (u8 *)(uintptr_t)mc_regions[at].start;
    if (mc_regions[at].content_size) memcpy(mc_regions[at].bytes, mc_regions[at].content, mc_regions[at].content_size);
  }
}
static void mc_protect(void) {
  for (size_t at = 0; at < sizeof mc_regions / sizeof *mc_regions; at++)
    if (!(mc_regions[at].permissions & MC_WRITE)) {
      uintptr_t low = (uintptr_t)mc_regions[at].start & ~(uintptr_t)4095;
      uintptr_t high = ((uintptr_t)mc_regions[at].start + mc_regions[at].size + 4095) & ~(uintptr_t)4095;
      if (mprotect((void *)low, high - low, PROT_READ)) exit(2);
    }
  signal(SIGSEGV, mc_segmentation);
  signal(SIGBUS, mc_segmentation);
}
#endif
"""


def run_harness(address_bits: int, pointers: bool) -> str:
    text = RUN_HARNESS.replace("ADDRESS", f"u{address_bits}")
    if not pointers:
        return text.replace("  mc_map();\n", "")
    before_main = "int main(int argc, char **argv)"
    text = text.replace(before_main, f"MAPS{before_main}").replace(
        "  mc_run();\n}\n#else", "  mc_protect();\n  mc_run();\n}\n#else"
    )
    head, tail = text.split("MAPS")
    inner = POINTER_MAP.removeprefix("#ifdef MC_RUN\n").removesuffix("#endif\n")
    return head + inner + tail
