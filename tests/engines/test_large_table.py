"""A jump through a long table of distances in a file with undefined symbols: no way of it leads out of the file."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mcveto.engines.simulation.simulate import simulate
from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec

WAYS = 600
DISPATCH = """
	.text
	.globl handle
handle:
	bl choice
	cmplwi 0,3,{last}
	bgt 0,handle
	slwi 3,3,2
	lis 9,table@ha
	addi 9,9,table@l
	lwzx 10,9,3
	add 10,10,9
	mtctr 10
	bctr
{ways}
reached:
	nop
	b handle
	.section .rodata
	.align 2
table:
{table}
"""


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")
@pytest.mark.parametrize(("first", "kind"), [("", "proved"), ("reached", "violated")])
def test_distances_to_many_ways(first: str, kind: str, tmp_path: Path) -> None:
    """The last way, or what lies behind it, is the target."""
    path = tmp_path / "dispatch.s"
    names = [f".L{number}" for number in range(WAYS - 1)] + [first or f".L{WAYS - 1}"]
    ways = "\n".join(f".L{number}:\n\tbl choice\n\tb handle" for number in range(WAYS))
    table = "\n".join(f"\t.long {name}-table" for name in names)
    path.write_text(DISPATCH.format(last=WAYS - 1, ways=ways, table=table))
    reach = PropertySpec("reach", ("reached",))
    spec = Spec(arch="ppc32-be", entry="handle", input_calls=(InputCall("choice"),), properties=(reach,))
    verdict = simulate(load_program(str(path), spec), 60)
    assert verdict.kind == kind, verdict.reason
