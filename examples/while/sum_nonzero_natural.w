# The same with what the notes have in mind, a and b not negative: valid in Z, refuted by wrapping around in u32.
a >= 0 && b >= 0 -> [
  if (a > 0 || b > 0) {
    assert(a + b != 0);
    x := c / (a + b);
  }
] true
