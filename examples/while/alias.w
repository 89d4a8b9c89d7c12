# Lecture, section 4, (15): two names of one cell.
[ x := 1; y := 1; Mem(x) := 0 ] Mem(y) != 0
