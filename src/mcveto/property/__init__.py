"""What is asked of a program: typestate automata as files, and the ghost state they compile to."""
