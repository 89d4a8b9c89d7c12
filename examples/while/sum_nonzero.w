# Lecture, section 2, other theories, as printed. The notes call condition (8) valid in Z; it is not (a = 1, b = -1).
if (a > 0 || b > 0) {
  assert(a + b != 0);
  x := c / (a + b);
}
