"""Solvers: the only place that knows bitwuzla and z3. Both are imported when first used."""

from __future__ import annotations

from mcveto.logic.solver.interface import Answer, MemoryModel, Solver, SolverError, Statistics

__all__ = ["Answer", "MemoryModel", "Solver", "SolverError", "Statistics", "make_solver"]

BACK_ENDS = ("bitwuzla", "z3")


def load(name: str) -> None:
    """Imports what a solver of that name begins with."""
    if name == "z3":
        import mcveto.logic.solver.z3_backend
    else:
        import mcveto.logic.solver.bitwuzla_backend  # noqa: F401


def make_solver(name: str = "auto", isolated: bool = False) -> Solver:
    """A solver by name: `bitwuzla`, `z3`, or `auto` for bitwuzla with z3 as its second.

    In-process solvers keep their time limits as well as the library does; `isolated` ones run in a process of
    their own and keep them always, and the second of `auto` always is: it gets what the first has failed on.
    """
    if name == "auto":
        from mcveto.logic.solver.second_opinion import SecondOpinion

        return SecondOpinion(lambda: make_solver("bitwuzla", isolated), lambda: make_solver("z3", isolated=True))
    if name not in BACK_ENDS:
        raise ValueError(f"unknown solver {name!r}; there are auto, {', '.join(BACK_ENDS)}")
    if isolated:
        from mcveto.logic.solver.isolated import IsolatedSolver

        return IsolatedSolver(name)
    if name == "bitwuzla":
        from mcveto.logic.solver.bitwuzla_backend import BitwuzlaSolver

        return BitwuzlaSolver()
    from mcveto.logic.solver.z3_backend import Z3Solver

    return Z3Solver()
