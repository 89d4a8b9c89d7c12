# Memory safety: the repaired twin, proved by its invariant for any n.
theory s32;
memory 8;
0 <= n && n <= U -> [
  i := 0;
  while (i < n) invariant (0 <= i && i <= n) {
    Mem(i) := i;
    i := i + 1
  }
] i = n
