# Memory safety: an off-by-one. The guard 0 <= i < U of the last write cannot be proved.
theory s32;
memory 8;
0 <= n && n <= U -> [
  i := 0;
  while (i <= n) {
    Mem(i) := i;
    i := i + 1
  }
] i = n + 1
