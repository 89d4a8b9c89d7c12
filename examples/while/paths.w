# Lecture, section 3: symbolic execution. (The notes' path (12) has x := -1 where their program has x := -2.)
if (a > 0) { x := -2; }
if (b < 5) {
  if (a = 0 && c != 0) { y := 1 }
  z := 2;
}
assert(x + y + z != 3);
