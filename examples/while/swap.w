# Lecture, section 3: the conditions (10) by [:=] and (11) by [:=]=.
x = a && y = b -> [ z := x; x := y; y := z ] x = b && y = a
