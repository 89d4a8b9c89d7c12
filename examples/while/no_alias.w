# Different cells: [*]2 closes the goal that [*]1 would not.
Mem(2) != 0 -> [ x := 1; y := 2; Mem(x) := 0 ] Mem(y) != 0
