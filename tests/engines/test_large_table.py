"""A jump through a long table of distances in a file with undefined symbols: no way of it leads out of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.engines.simulation.simulate import simulate
from tests.engines.dispatch_text import dispatching
from tests.engines.driver_text import needs_assembler

WAYS = 600


@needs_assembler
@pytest.mark.parametrize(("first", "kind"), [("", "proved"), ("reached", "violated")])
def test_distances_to_many_ways(first: str, kind: str, tmp_path: Path) -> None:
    """The last way, or what lies behind it, is the target."""
    names = [f".L{number}" for number in range(WAYS - 1)] + [first or f".L{WAYS - 1}"]
    ways = "\n".join(f".L{number}:\n\tbl choice\n\tb handle" for number in range(WAYS))
    program = dispatching(tmp_path, [f"{name}-table" for name in names], "\tadd 10,10,9", ways)
    verdict = simulate(program, 60)
    assert verdict.kind == kind, verdict.reason
