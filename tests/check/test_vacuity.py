"""What a proof says about whether anything happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.search import Question, search
from mcveto.verdict import Verdict


def verify(tmp_path: Path, code: str, **spec: object) -> Verdict:
    """The verdict on x86-32 code at 0x1000 whose last byte is not to be reached."""
    file = tmp_path / "blob"
    content = bytes.fromhex(code) + b"\xf4"
    file.write_bytes(content)
    target = PropertySpec("reach", (0x1000 + len(content) - 1,))
    whole = Spec(arch="x86-32", base=0x1000, entry=0x1000, properties=(target,), **spec)  # type: ignore[arg-type]
    program = load_program(str(file), whole)
    return search(lambda: program, Question(timeout=120)).verdict


def test_something_happens(tmp_path: Path) -> None:
    verdict = verify(tmp_path, "c3")
    assert verdict.kind == "proved" and verdict.warnings == ()
    assert verdict.support["entry_reached"] and verdict.support["halt_reached"]
    assert verdict.support["assumptions_met"] is None


@pytest.mark.parametrize("code", ["ebfe", "31c0 f7f0 c3", "90 a100000000 c3"])
def test_nothing_ever_ends(code: str, tmp_path: Path) -> None:
    """jmp to itself; a division by zero; a read of an unmapped address."""
    verdict = verify(tmp_path, code)
    assert verdict.kind == "proved"
    assert not verdict.support["halt_reached"]
    assert len(verdict.warnings) == 1 and "halt" in verdict.warnings[0]


def test_an_assumption_that_never_holds(tmp_path: Path) -> None:
    """push 0; call assume; pop eax; ret; assume: ret"""
    verdict = verify(tmp_path, "6a00 e802000000 58 c3 c3", assume=(0x1009,))
    assert verdict.kind == "proved"
    assert verdict.support["assumptions_met"] is False
    assert any("assumption at 0x1009 held in no run" in warning for warning in verdict.warnings)


def test_an_assumption_that_can_hold(tmp_path: Path) -> None:
    """call input; push eax; call assume; pop eax; ret; input: ret; nop; assume: ret"""
    code = "e808000000 50 e804000000 58 c3 c3 90 c3"
    verdict = verify(tmp_path, code, input_calls=(InputCall(0x100D),), assume=(0x100F,))
    assert verdict.kind == "proved", verdict.headline
    assert verdict.support["assumptions_met"] is True
    assert verdict.support["halt_reached"] is True and verdict.warnings == ()
