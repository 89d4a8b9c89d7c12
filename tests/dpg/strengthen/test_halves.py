"""Relations modulo 2^32 between registers of 64 bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.driver import Limits
from mcveto.dpg.strengthen import stages
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, RegionPermissions, Spec
from mcveto.verdict import Verdict

# call input; mov r14d, eax; mov ecx, eax; test ecx, ecx; je end; xor ebx, ebx; xor esi, esi;
# again: call input; test eax, eax; je other; inc ebx; jmp next; other: inc esi; next: dec ecx; jne again;
# add ebx, esi; cmp ebx, r14d; je end; target: nop; end: ret; input: ret
SPLIT = (
    "e829000000 4189c6 89c1 85c9 741f 31db 31f6 e817000000 85c0 7404 ffc3 eb02 ffc6 ffc9 75ed 01f3 4439f3 7401 90 c3 c3"
)
TARGET, INPUT = 0x102C, 0x102E


def split(folder: Path) -> Program:
    content = bytes.fromhex(SPLIT.replace(" ", ""))
    file = folder / "blob"
    file.write_bytes(content)
    spec = Spec(
        arch="x86-64",
        base=0x1000,
        entry=0x1000,
        input_calls=(InputCall(INPUT),),
        regions=(RegionPermissions(0x1000, len(content), "rx"),),
        properties=(PropertySpec("reach", (TARGET,)),),
    )
    return load_program(str(file), spec)


def decide(folder: Path, seconds: float = 120.0) -> Verdict:
    return AutoDriver(split(folder), Limits(seconds=seconds)).run()


def test_a_sum_that_wraps_around_in_half_a_register(tmp_path: Path) -> None:
    assert decide(tmp_path).kind == "proved"


@pytest.mark.slow
def test_it_is_the_halves_that_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "lower_halves", lambda system, places: [])
    assert decide(tmp_path, 20.0).kind == "unknown"
