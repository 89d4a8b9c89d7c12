"""`mcveto doctor`: what is installed and whether it works, each by a small real task."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import click


def _decode_everything() -> str:
    from mcveto.machine.isa import decoder_for, isa_rows

    for name in isa_rows():
        decoder_for(name)
    return f"{len(isa_rows())} instruction sets"


def _solve(name: str) -> str:
    from mcveto.logic.solver import make_solver
    from mcveto.logic.terms import const, eq, mul, var

    solver = make_solver(name)
    x = var("x", 16)
    solver.add(eq(mul(x, x), const(25, 16)))
    if solver.check(timeout=10) != "sat" or solver.value(x) ** 2 & 0xFFFF != 25:
        raise RuntimeError("a simple equation was not solved")
    return "solves"


def _load_library(name: str) -> str:
    __import__(name)
    return "imports"


CHECKS: list[tuple[str, str, Callable[[], str]]] = [
    ("pypcode", "SLEIGH decoding", _decode_everything),
    ("bitwuzla", "first solver", lambda: _solve("bitwuzla")),
    ("z3-solver", "second solver", lambda: _solve("z3")),
    ("lief", "loading binaries", lambda: _load_library("lief")),
    ("pyelftools", "unwind tables", lambda: _load_library("elftools")),
    ("unicorn", "confirming runs", lambda: _load_library("unicorn")),
]


@click.command()
def command() -> int:
    """Say what is installed and whether it works."""
    print(f"python {sys.version.split()[0]}")
    failures = 0
    for package, purpose, check in CHECKS:
        try:
            installed = version(package)
            result = check()
            state = "ok"
        except PackageNotFoundError:
            installed, result, state = "-", "not installed", "MISSING"
        except Exception as error:
            result, state = f"{type(error).__name__}: {error}", "BROKEN"
        failures += state != "ok"
        print(f"{package:<12} {installed:<10} {state:<8} {purpose}: {result}")
    return 70 if failures else 0
