# Lecture, section 2, unwinding assertions: bound 2 is enough for all traces.
theory s32;
x = 2 -> [ while (0 < x) { x := x - 1 } ] x = 0
