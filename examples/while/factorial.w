# Recursion, unfolded three deep.
theory s32;
proc fac(n) returns r {
  if (n <= 0) { r := 1 } else { t := fac(n - 1); r := n * t }
}
0 <= n && n <= 3 -> [ y := fac(n) ] 1 <= y && y <= 6
