"""Assembly text that calls functions it does not define: what the spec says of them counts, the rest is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.search import Question, search

from .driver_text import needs_assembler

pytestmark = needs_assembler

# Takes the lock and gives it back if an input has bit 2, which is asked twice.
LOCKS = """
	.globl _start
_start:
	stwu 1,-16(1)
	lis 30,held@ha
	bl choice
	mr 31,3
	andi. 9,31,4
	beq 0,.L1
	li 9,1
	stw 9,held@l(30)
.L1:
	rlwinm 9,31,{shift},31,31
	cmpwi 0,9,0
	beq 0,.L2
	lwz 9,held@l(30)
	cmpwi 0,9,0
	bne 0,.L3
	bl reached
.L3:
	li 9,0
	stw 9,held@l(30)
.L2:
	bl halt
	.comm held,4,4
"""
CALL = """
_start:
	stwu 1,-16(1)
	bl choice
	cmpwi 0,3,5
	bne 0,.L1
	bl mystery
	cmpwi 0,3,0
	beq 0,.L1
	bl reached
.L1:
	bl halt
"""
READ = """
_start:
	stwu 1,-16(1)
	bl choice
	lis 9,table@ha
	la 9,table@l(9)
	rlwinm 3,3,2,28,29
	lwzx 3,9,3
	cmpwi 0,3,1
	bne 0,.L1
	bl reached
.L1:
	bl halt
"""


@pytest.mark.parametrize("engine", ["cegar", "simulation"])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (LOCKS.format(shift=30), "proved"),
        (LOCKS.format(shift=29), "violated"),
        (CALL, "unknown"),
        (READ, "unknown"),
    ],
    ids=["fix", "bug", "call", "read"],
)
def test_imports(engine: str, text: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "text.s"
    path.write_text(text)
    spec = Spec(
        entry="_start",
        input_calls=(InputCall("choice"),),
        halt=("halt",),
        properties=(PropertySpec("reach", ("reached",)),),
    )
    verdict = search(lambda: load_program(str(path), spec), Question(engine=engine, timeout=120.0)).verdict
    assert verdict.kind == kind
    if kind == "unknown":
        assert "outside the file" in verdict.reason or "jump to import mystery" in verdict.reason
