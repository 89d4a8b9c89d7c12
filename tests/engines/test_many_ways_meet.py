"""Where many ways meet: words that are anything already stay what they are, nothing else changes, and proofs hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.certify import Context
from mcveto.certify_paths import certificate_of_paths
from mcveto.check.discharge import Effort, check
from mcveto.engines.record import PathProof
from mcveto.engines.simulation.joined_memory import JoinedMemory
from mcveto.engines.simulation.meeting import Meeting, Where
from mcveto.engines.simulation.simulate import simulate
from mcveto.logic.terms import Term
from mcveto.program.program import Program
from mcveto.verdict import Verdict
from tests.engines.dispatch_text import dispatching
from tests.engines.driver_text import needs_assembler

WAYS = 24
FEW_WAYS = 5
WORDS = 8
HELD = 4 * WORDS
TAKE = f"""
	lis 8,words@ha
	addi 8,8,words@l
	lwz 7,{HELD}(8)
	cmpwi 0,7,0
	bne 0,reached
	li 7,1
	stw 7,{HELD}(8)
"""
GIVE_BACK = ".Ldone:\n\tli 7,{free}\n\tstw 7,{held}(8)\n\tb handle"
DATA = f"\t.bss\n\t.align 2\nwords:\n\t.space {HELD + 4}"


def program(tmp_path: Path, free: int, count: int = WAYS) -> Program:
    """Every way stores an input, a number or a sum in one of the words, then gives back what is held, or not."""
    ways = []
    for number in range(count):
        word = 4 * (number % WORDS)
        sums = f"\tlwz 6,{4 * ((number + 3) % WORDS)}(8)\n\tadd 3,3,6" if number % 3 == 0 else f"\tli 3,{number}"
        kept = "\tbl choice" if number % 3 == 1 else sums
        ways.append(f".L{number}:\n{kept}\n\tstw 3,{word}(8)\n\tb .Ldone")
    ways.append(GIVE_BACK.format(free=free, held=HELD))
    return dispatching(tmp_path, [f".L{number}" for number in range(count)], TAKE, "\n".join(ways), DATA)


def answer(found: Verdict) -> tuple[object, ...]:
    counts = ("instructions_executed", "nodes", "refinements", "locations")
    return found.kind, *(found.statistics[name] for name in counts)


@needs_assembler
@pytest.mark.parametrize(("free", "kind"), [(0, "proved"), (1, "violated")])
def test_nothing_but_the_effort_changes(free: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = program(tmp_path, free)
    made: list[object] = []
    fresh = Meeting.fresh

    def counted(meeting: Meeting, bits: int, where: Where) -> Term:
        made.extend(where[:1])
        return fresh(meeting, bits, where)

    monkeypatch.setattr(Meeting, "fresh", counted)
    verdict = simulate(asked, 60)
    assert verdict.kind == kind, verdict.reason
    with_it, made[:] = made.count("memory"), []
    monkeypatch.setattr(JoinedMemory, "note_loose", lambda memory, result: None)
    assert answer(simulate(asked, 60)) == answer(verdict)
    assert 2 * with_it < made.count("memory")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@needs_assembler
def test_the_checker_accepts_what_is_made_of_many_ways(tmp_path: Path) -> None:
    asked = program(tmp_path, 0, FEW_WAYS)
    verdict = simulate(asked, 60)
    assert isinstance(verdict.proof, PathProof)
    certificate = certificate_of_paths(asked, verdict.proof, "test", Context())
    assert certificate is not None
    assert check(certificate, asked.image, Effort(timeout=60)).problem == ""
