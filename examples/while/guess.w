# Inputs and assume: one input breaks the assertion, by wrapping around.
theory u8;
x := input();
assume(x > 100);
y := x * 3;
assert(y != 47);
