# Lecture, section 2: multiplication by doubling. The contract is wrong: y may be 0 or negative at the start.
x != 0 -> [
  z := 0;
  while (y > 0) {
    if (y % 2 = 1) { z := z + x }
    x := 2 * x;
    y := y / 2
  }
] z != 0
