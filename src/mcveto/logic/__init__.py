"""Terms, simplification, evaluation, printing and solvers. Imports nothing else of mcveto."""
