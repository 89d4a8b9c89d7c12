/* Workloads of machine_speed.py. Each entry point gets an amount of work and returns a checksum. */
typedef unsigned int u32;
typedef unsigned char u8;

#define NOINLINE __attribute__((noinline))

static u32 array[256];
static u8 source[512], destination[512];
static u32 table[256];

NOINLINE u32 alu(u32 n) {
    u32 a = 1, b = 2;
    for (u32 i = 0; i < n; i++) {
        a = (a ^ (b << 3)) + i;
        b = (b + (a >> 5)) ^ 0x9e3779b9u;
    }
    return a ^ b;
}

NOINLINE static void copy(u8 *to, const u8 *from, u32 n) {
    volatile u8 *out = to;
    while (n--) *out++ = *from++;
}

NOINLINE u32 memory_copy(u32 n) {
    u32 sum = 0;
    for (u32 i = 0; i < 512; i++) source[i] = (u8)(i * 7);
    for (u32 i = 0; i < n; i++) {
        copy(destination, source, 512);
        sum += destination[i & 511];
    }
    return sum;
}

NOINLINE static int greater(const u32 *a, const u32 *b) { return *a > *b; }

NOINLINE static void swap(u32 *a, u32 *b) {
    u32 t = *a;
    *a = *b;
    *b = t;
}

NOINLINE u32 bubble(u32 n) {
    u32 seed = 1;
    for (u32 round = 0; round < n; round++) {
        for (u32 i = 0; i < 64; i++) array[i] = seed = seed * 1103515245u + 12345u;
        for (u32 i = 0; i + 1 < 64; i++)
            for (u32 j = 0; j + 1 < 64 - i; j++)
                if (greater(&array[j], &array[j + 1])) swap(&array[j], &array[j + 1]);
    }
    return array[3];
}

NOINLINE u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

NOINLINE u32 crc(u32 n) {
    for (u32 i = 0; i < 256; i++) {
        u32 c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        table[i] = c;
    }
    u32 c = ~0u;
    for (u32 i = 0; i < n; i++) c = table[(c ^ (i * 31)) & 255] ^ (c >> 8);
    return ~c;
}

NOINLINE static u32 gcd(u32 a, u32 b) {
    while (b) {
        u32 t = a % b;
        a = b;
        b = t;
    }
    return a;
}

NOINLINE u32 sieve(u32 n) {
    u32 found = 0;
    for (u32 round = 0; round < n; round++) {
        for (u32 i = 0; i < 512; i++) source[i] = 1;
        for (u32 i = 2; i < 512; i++) {
            if (!source[i]) continue;
            found += i;
            for (u32 j = i + i; j < 512; j += i) source[j] = 0;
        }
    }
    return found;
}

NOINLINE u32 mixed(u32 n) {
    u32 sum = 0;
    for (u32 i = 1; i <= n; i++) {
        sum += gcd(i * 12345u, sum | 1);
        switch (sum & 7) {
        case 0: sum ^= fibonacci(3); break;
        case 1: array[i & 63] = sum; break;
        case 2: sum += array[(i * 5) & 63]; break;
        case 3: swap(&array[1], &array[2]); break;
        case 5: sum = sum << 3 | sum >> 29; break;
        default: sum += i;
        }
    }
    return sum;
}

u32 start(u32 which, u32 n) {
    switch (which) {
    case 0: return alu(n);
    case 1: return memory_copy(n);
    case 2: return bubble(n);
    case 3: return fibonacci(n);
    case 4: return crc(n);
    case 5: return sieve(n);
    default: return mixed(n);
    }
}
