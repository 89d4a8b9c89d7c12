/* Correct programs that use their frames in every way that could look like leaving a variable, and wrong ones that do
   leave one. CASE chooses; input() is any number. */
#include "opaque.h"

struct record {
  byte name[8];
  unsigned count, limit;
};
OPAQUE void set(struct record *r, unsigned value) { r->count = value, r->limit = value + 1; }
OPAQUE unsigned get(struct record const *r) { return r->count + r->limit + r->name[0]; }
OPAQUE struct record make(unsigned value) {
  struct record r;
  fill(r.name, 8, (byte)value);
  r.count = value, r.limit = 3;
  return r;
}

void program(void) {
  unsigned n = input();
#if CASE == 0 /* a structure, cleared as a whole, fields used directly and through a pointer */
  struct record r;
  fill((byte *)&r, sizeof r, 0);
  r.count = n;
  r.limit = r.count + 1;
  set(&r, n);
  sink = get(&r) + r.limit;
#elif CASE == 1 /* copied as a whole */
  struct record r, s;
  fill(r.name, 8, 1);
  r.count = n, r.limit = 2;
  copy((byte *)&s, (byte *)&r, sizeof r);
  sink = s.count + s.limit + r.count + get(&s);
#elif CASE == 2 /* elements of an array used directly and by an index */
  unsigned cells[4];
  cells[0] = cells[1] = cells[2] = cells[3] = 0;
  cells[n % 4]++;
  if (cells[1] == 1)
    cells[1] = 2;
  sink = cells[1] + cells[2] + total(cells, 4);
#elif CASE == 3 /* pointers into an array, from both ends */
  byte text[12];
  fill(text, 12, 1);
  byte *p = text + 5, *end = text + 12;
  unsigned sum = 0;
  p[-1] = (byte)n;
  while (end != text)
    sum += *--end;
  fill(text + 5, 7, 2);
  for (unsigned i = 0; i < 9; i++)
    sum += text[i];
  sink = sum + *p;
#elif CASE == 4 /* an array of structures, by fields */
  struct record all[3];
  for (unsigned i = 0; i < 3; i++)
    all[i].count = i, all[i].limit = n;
  all[1].count = all[1].count + 1;
  sink = all[n % 3].limit + all[1].count;
#elif CASE == 5 /* rows of a table */
  unsigned table[3][4];
  for (unsigned i = 0; i < 3; i++)
    for (unsigned j = 0; j < 4; j++)
      table[i][j] = i * j;
  sink = total(&table[0][0], 12) + total(table[1], 4) + table[n % 3][n % 4];
#elif CASE == 6 /* a structure by value */
  struct record r = make(n), s = r;
  s.count++;
  sink = get(&r) + get(&s);
#elif CASE == 7 /* the bytes of a number */
  unsigned number = n, other = 7;
  byte *bytes = (byte *)&number;
  bytes[n % 4] = 3;
  sink = number + other;
#elif CASE == 8 /* several arrays beside each other, each filled */
  byte one[5], two[7], three[9];
  fill(one, 5, 1), fill(two, 7, 2), fill(three, 9, 3);
  copy(one, two, n % 6);
  copy(three, one, 5);
  sink = one[n % 5] + two[n % 7] + three[n % 9];
#elif CASE == 9 /* a pointer that is moved from one array to another */
  byte one[6], two[6];
  byte *p = n & 1 ? one : two;
  fill(one, 6, 1), fill(two, 6, 2);
  p[n % 6] = 4;
  p = p == one ? two : one;
  p[5] = 1;
  sink = one[0] + two[5];
#elif CASE == 20 /* one byte into a number */
  unsigned guard = 5;
  byte text[8];
  unsigned count = n % 12;
  for (unsigned i = 0; i < count; i++)
    text[i] = 1;
  sink = guard + text[0];
#elif CASE == 21 /* from one array into the next */
  byte one[16], two[48], three[16];
  fill(one, 16, 1), fill(two, 48, 1), fill(three, 16, 1);
  fill(n & 1 ? two : three, 20, 2);
  sink = one[n % 16] + two[n % 48] + three[n % 16];
#elif CASE == 22 /* in front of an array */
  byte one[16], two[16];
  fill(one, 16, 1), fill(two, 16, 1);
  byte *p = n & 1 ? one : two;
  p[-(int)(n % 3)] = 2;
  sink = one[n % 16] + two[n % 16];
#endif
}
