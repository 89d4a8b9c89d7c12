/* Correct programs with structures, unions and pieces of arrays that are filled, copied and looked through by lengths
   that depend on the input. CASE chooses; input() is any number. memset, memcpy, strlen, strcpy and strncpy are bound
   to library models. */
#include "opaque.h"
typedef __SIZE_TYPE__ size;
OPAQUE void *memset(void *to, int with, size count) {
  for (size i = 0; i < count; i++)
    ((volatile byte *)to)[i] = (byte)with;
  return to;
}
OPAQUE void *memcpy(void *to, void const *from, size count) {
  for (size i = 0; i < count; i++)
    ((volatile byte *)to)[i] = ((byte const *)from)[i];
  return to;
}
OPAQUE size strlen(char const *s) {
  size n = 0;
  while (s[n])
    n++;
  return n;
}
OPAQUE char *strcpy(char *to, char const *s) {
  char *r = to;
  while ((*to++ = *s++))
    ;
  return r;
}
OPAQUE char *strncpy(char *to, char const *s, size n) {
  size i = 0;
  for (; i < n && s[i]; i++)
    to[i] = s[i];
  for (; i < n; i++)
    to[i] = 0;
  return to;
}
OPAQUE unsigned check(byte const *from, unsigned count) {
  unsigned s = 0;
  for (unsigned i = 0; i < count; i++)
    s = s * 31 + from[i];
  return s;
}
struct record {
  byte name[8];
  unsigned count, limit;
};
struct packet {
  byte tag[4];
  unsigned length;
  byte body[24];
  unsigned crc;
};
struct node {
  struct node *next;
  unsigned value;
  char label[6];
};
union word {
  byte bytes[8];
  struct {
    unsigned low, high;
  } half;
  unsigned short shorts[4];
};
OPAQUE unsigned get(struct record const *r) { return r->count + r->limit + r->name[0]; }
OPAQUE void use(void *p) { sink = *(byte *)p; }
OPAQUE struct packet make(unsigned n) {
  struct packet p;
  memset(&p, 0, sizeof p);
  p.length = n % 24;
  fill(p.body, p.length, 7);
  p.crc = p.length + 1;
  return p;
}
OPAQUE unsigned sum(unsigned count, ...) {
  __builtin_va_list l;
  __builtin_va_start(l, count);
  unsigned s = 0;
  for (unsigned i = 0; i < count; i++)
    s += __builtin_va_arg(l, unsigned);
  __builtin_va_end(l);
  return s;
}
#define container(p, t, f) ((t *)((byte *)(p) - __builtin_offsetof(t, f)))
OPAQUE unsigned outer(unsigned *limit) {
  struct record *r = container(limit, struct record, limit);
  r->count += 1;
  return r->name[2] + r->count;
}
#if CASE == 25
OPAQUE void put64(unsigned long long *to, unsigned n) {
  byte *b = (byte *)to;
  for (unsigned i = 0; i < n && i < 8; i++)
    b[i] = (byte)(i + n);
}
#endif
void program(void) {
  unsigned n = input();
#if CASE == 0 /* partial fill of a structure up to an input */
  struct record r;
  r.count = 1, r.limit = 2;
  memset(r.name, 0, 8);
  fill((byte *)&r, n % (sizeof r + 1), 1);
  sink = r.count + r.limit + get(&r);
#elif CASE == 1  /* the same by memcpy */
  struct record r, s;
  memset(&s, 3, sizeof s);
  r.count = 1, r.limit = 2;
  if (n <= sizeof r)
    memcpy(&r, &s, n);
  sink = r.count + r.limit + get(&r);
#elif CASE == 2  /* cleared after use, then looked at */
  struct record r;
  r.count = n;
  sink = r.count;
  memset(&r, 0, sizeof r);
  sink = r.count + r.limit;
#elif CASE == 3  /* the name is filled exactly, then the whole is copied */
  struct record r, s;
  memset(r.name, 'x', sizeof r.name);
  r.count = n, r.limit = 4;
  memcpy(&s, &r, sizeof s);
  sink = s.count + get(&s) + r.limit;
#elif CASE == 4  /* bytes of a long number */
  unsigned long long key = 0;
  byte mac[6];
  fill(mac, 6, (byte)n);
  memcpy(&key, mac, 6);
  sink = (unsigned)key + (unsigned)(key >> 32);
#elif CASE == 5  /* a packet received up to a length */
  struct packet p;
  byte wire[40];
  memset(wire, (byte)n, 40);
  p.length = 0;
  p.crc = 9;
  memset(p.body, 0, sizeof p.body);
  unsigned got = n % (sizeof p + 1);
  memcpy(&p, wire, got);
  sink = p.length + p.crc + p.body[n % 24] + p.tag[n % 4];
#elif CASE == 6  /* text[n - 1] and text[n + 1] */
  char text[32], more[40];
  memset(text, 'a', 32);
  memset(more, 'b', 40);
  int k = n % 31 + 1;
  text[k - 1] = 0;
  more[k + 2] = 1;
  more[k - 1] = 2;
  sink = text[k] + more[k + 1] + text[k - 1];
#elif CASE == 7  /* union */
  union word w;
  w.half.low = n, w.half.high = 7;
  w.bytes[n % 8] = 1;
  memset(w.bytes, 0, n % 9);
  sink = w.half.low + w.half.high + w.shorts[n % 4];
  use(&w);
#elif CASE == 8  /* array of structures, one copied by length */
  struct record all[3];
  for (unsigned i = 0; i < 3; i++)
    all[i].count = i, all[i].limit = n, memset(all[i].name, 1, 8);
  memcpy(&all[0], &all[2], n % (sizeof all[0] + 1));
  all[1].count = all[1].count + 1;
  sink = all[n % 3].limit + all[1].count + all[0].count + all[0].limit;
#elif CASE == 9  /* container of a field */
  struct record r;
  memset(&r, 1, sizeof r);
  r.limit = n;
  sink = outer(&r.limit) + r.count;
#elif CASE == 10 /* variable arguments */
  unsigned a = n & 3, b = 7;
  sink = sum(3, a, b, n) + sum(a, 1, 2, 3) + b;
#elif CASE == 11 /* VLA and alloca */
  unsigned k = n % 13 + 4;
  byte room[k];
  byte *more = __builtin_alloca(k + 3);
  memset(room, 1, k);
  fill(more, k + 3, 2);
  unsigned guard = room[k - 1];
  sink = guard + more[k + 2];
#elif CASE == 12 /* structure by hidden pointer */
  struct packet p = make(n), q = make(n + 1);
  q.length++;
  memcpy(&p, &q, n % 2 ? sizeof p : 8);
  sink = p.length + p.crc + q.length;
#elif CASE == 13 /* checksum over a structure, byte by byte, to a length */
  struct packet p;
  memset(&p, 0, sizeof p);
  p.length = n;
  p.crc = 0;
  unsigned len = n % (sizeof p + 1);
  p.crc = check((byte *)&p, len);
  sink = p.crc + p.length;
#elif CASE == 14 /* inline walk over the bytes of a structure */
  struct record r;
  r.count = n;
  r.limit = 1;
  for (unsigned i = 0; i < 8; i++)
    r.name[i] = i;
  unsigned s = 0;
  for (unsigned i = 0; i < sizeof r && i < n; i++)
    s += ((byte *)&r)[i];
  sink = s + r.count + r.limit;
#elif CASE == 15 /* rows of a table, cleared up to a row */
  byte rows[4][10];
  unsigned k = n % 5;
  memset(rows, 0, 40);
  for (unsigned i = 0; i < 10; i++)
    rows[1][i] = i;
  memset(rows, 1, k * 10);
  strncpy((char *)rows[2], "abc", 10);
  sink = rows[1][n % 10] + rows[2][0] + rows[3][n % 10];
#elif CASE == 16 /* scopes that share places */
  {
    byte a[16];
    fill(a, n % 17, 1);
    use(a);
    sink = a[n % 16];
  }
  {
    unsigned x = input(), y = input();
    use(&x);
    use(&y);
    x += y;
    use(&x);
    sink = x + y;
  }
  {
    struct record r;
    fill((byte *)&r, 10 + n % 6, 1);
    use(&r);
    sink = r.count;
  }
#elif CASE == 17 /* a list in a frame */
  struct node a, b, c;
  a.next = &b, b.next = &c, c.next = 0;
  a.value = n, b.value = 2, c.value = 3;
  strncpy(a.label, "abcde", 6);
  memcpy(&b, &a, sizeof b);
  b.next = &c;
  unsigned s = 0;
  for (struct node *p = &a; p; p = p->next)
    s += p->value;
  sink = s + b.label[n % 6];
#elif CASE == 18 /* text exactly as long as its array */
  char t[8];
  char u[8];
  unsigned k = n % 8;
  memset(t, 'x', k);
  t[k] = 0;
  strcpy(u, t);
  sink = strlen(u) + u[k];
#elif CASE == 19 /* two halves of a buffer */
  char b[32];
  char *lo = b, *hi = b + 16;
  memset(hi, 'h', 15);
  hi[15] = 0;
  memset(lo, 'l', 16);
  sink = strlen(b) + strlen(hi);
  memcpy(b, hi, n % 17);
  memset(b, 0, n % 33);
  sink = b[n % 32];
#elif CASE == 20 /* end pointers and reverse walks */
  unsigned a[6], b[6];
  for (unsigned i = 0; i < 6; i++)
    a[i] = i, b[i] = n;
  unsigned *p = a + 6, s = 0;
  while (p-- != a)
    s += *p;
  unsigned *q = &b[n % 6];
  q[0] = 1;
  while (q > b)
    s += *q--;
  sink = s + a[n % 6] + b[2];
#elif CASE == 21 /* nested structures, inner one by pointer and length */
  struct {
    unsigned id;
    struct packet in;
    unsigned end;
  } o;
  memset(&o, 0, sizeof o);
  o.id = n;
  o.end = 5;
  memset(&o.in, 1, n % (sizeof o.in + 1));
  o.in.length++;
  sink = o.id + o.end + o.in.length + o.in.crc + o.in.body[n % 24];
#elif CASE == 22 /* header and payload copied out in two parts */
  struct packet p;
  byte out[40];
  p.length = n % 25;
  p.crc = 1;
  memset(p.tag, 't', 4);
  memset(p.body, 'b', p.length);
  memcpy(out, &p, 8);
  memcpy(out + 8, p.body, p.length);
  sink = out[7] + out[8 + n % 24] + p.length + p.crc;
#elif CASE == 23 /* a structure with flags as bytes next to words */
  struct {
    byte a, b;
    unsigned short c;
    unsigned d;
    byte e[3];
    byte f;
  } x;
  x.a = 1, x.b = n, x.c = 3, x.d = n;
  x.e[0] = x.f = 1;
  for (unsigned i = 0; i < n % 13; i++)
    ((byte *)&x)[i] = 0;
  sink = x.a + x.b + x.c + x.d + x.e[n % 3] + x.f;
#elif CASE == 24 /* swap of structures through a temporary buffer */
  struct record r, s;
  byte t[sizeof r];
  r.count = 1, r.limit = n, s.count = 2, s.limit = 3;
  memset(r.name, 1, 8), memset(s.name, 2, 8);
  unsigned k = n & 1 ? sizeof r : 12;
  memcpy(t, &r, k), memcpy(&r, &s, k), memcpy(&s, t, k);
  sink = r.count + s.count + r.limit + s.limit;
#elif CASE == 25 /* a long number filled byte by byte elsewhere */
  unsigned long long v = 0;
  unsigned after = 3;
  put64(&v, n);
  sink = (unsigned)v + (unsigned)(v >> 32) + after;
#elif CASE == 26 /* struct assignment and comparison by bytes */
  struct record r = {{1, 2}, 3, n}, s = r;
  unsigned same = 1;
  for (unsigned i = 0; i < sizeof r; i++)
    if (((byte *)&r)[i] != ((byte *)&s)[i]) {
      same = 0;
      break;
    }
  s.count += n & 1;
  for (unsigned i = 0; i < sizeof r; i++)
    if (((byte *)&r)[i] != ((byte *)&s)[i]) {
      same = i;
      break;
    }
  sink = same + r.count + s.count;
#elif CASE == 27 /* sorting records in place */
  struct {
    unsigned key;
    byte data[5];
  } a[4], t;
  for (unsigned i = 0; i < 4; i++)
    a[i].key = n >> i & 3, a[i].data[0] = i;
  for (unsigned i = 0; i < 3; i++)
    for (unsigned j = 0; j < 3 - i; j++)
      if (a[j].key > a[j + 1].key)
        t = a[j], a[j] = a[j + 1], a[j + 1] = t;
  sink = a[0].key + a[3].data[0];
#endif
}
