"""Paths that begin within a run: what they find is replayed from the entry; what they do not find is nobody's proof."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mcveto.check.replay import confirmed
from mcveto.engines.alongside import POLICIES
from mcveto.engines.far_paths import FarPaths
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, InputMemory, PropertySpec, Spec

# mov ecx, 3000; again: dec ecx; jnz again
LOOP = "b9b80b0000 49 75fd"
# 0x1008: call input (0x1030); cmp eax, KEY; jne +1; target (0x1014): nop; ret
ASK = "e823000000 3d78563412 7501 90 c3"


def program(folder: Path, code: str, target: int) -> Program:
    file = folder / "blob"
    content = bytes.fromhex(code.replace(" ", ""))
    file.write_bytes(content + b"\x90" * (0x30 - len(content)) + b"\xc3")
    properties = (PropertySpec("reach", (target,)),)
    spec = Spec(arch="x86-32", base=0x1000, entry=0x1000, input_calls=(InputCall(0x1030),), properties=properties)
    return load_program(str(file), spec)


def far(subject: Program, seconds: float = 60.0) -> FarPaths:
    return FarPaths(subject, seconds, POLICIES["symex"])


def test_an_input_behind_a_long_loop(tmp_path: Path) -> None:
    subject = program(tmp_path, LOOP + ASK, 0x1014)
    found = far(subject).advance()
    assert found is not None
    assert (found.kind, found.at) == ("violated", 0x1014)
    assert [item.value for item in found.inputs] == [0x12345678]
    assert "emulator" in confirmed(subject, found).confirmed_by


def test_inputs_before_it_stay_as_they_were_drawn(tmp_path: Path) -> None:
    # call input; mov ebx, eax; loop; call input; sub eax, ebx; cmp eax, 0x1234567; jne +1; nop; ret
    code = f"e82b000000 89c3 {LOOP} e81c000000 29d8 3d67452301 7501 90 c3"
    subject = program(tmp_path, code, 0x101D)
    found = far(subject).advance()
    assert found is not None
    assert found.kind == "violated"
    first, second = (item.value for item in found.inputs)
    assert (second - first) % (1 << 32) == 0x1234567
    assert "emulator" in confirmed(subject, found).confirmed_by


@pytest.mark.parametrize(
    "code",
    [
        LOOP + "e823000000 83c801 83e0fe 3d79563412 7501 90 c3",  # an even number that should be odd
        ASK,  # nearer than this looks
        LOOP + "ebfe",  # no input at all, and no end
        LOOP + "6818100000 c3",  # a return that goes astray
    ],
    ids=["impossible", "near", "endless", "astray"],
)
def test_nothing_else_is_claimed(tmp_path: Path, code: str) -> None:
    begun = time.monotonic()
    found = far(program(tmp_path, code, 0x101A), 3.0).advance()
    assert found is None or found.kind == "unknown"
    assert time.monotonic() - begun < 30


def test_only_inputs_that_are_asked_for(tmp_path: Path) -> None:
    subject = program(tmp_path, LOOP + ASK, 0x1014)
    assert FarPaths.apply_to(subject)
    spec = Spec(
        arch="x86-32",
        base=0x1000,
        entry=0x1000,
        input_calls=(InputCall(0x1030),),
        input_memory=(InputMemory(0x1020, 4),),
        properties=(PropertySpec("reach", (0x1014,)),),
    )
    assert not FarPaths.apply_to(load_program(str(tmp_path / "blob"), spec))
