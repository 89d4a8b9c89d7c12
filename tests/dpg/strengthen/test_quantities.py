"""Relations with a number that is computed again in every turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.driver import Limits
from mcveto.dpg.strengthen import phases
from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.verdict import Verdict

# call input; mov ebx, eax; mov ecx, 3; cdq; idiv ecx; mov esi, eax; xor edi, edi;
# again: mov eax, ebx; cdq; idiv ecx; cmp edi, eax; jge end; test esi, esi; jg +1; target: nop; inc edi; dec esi;
# jmp again; end: ret; input: ret
COUNTED_DOWN = "e821000000 89c3 b903000000 99 f7f9 89c6 31ff 89d8 99 f7f9 39c7 7d09 85f6 7f01 90 47 4e ebee c3 c3"


def decide(folder: Path, seconds: float = 120.0) -> Verdict:
    file = folder / "blob"
    file.write_bytes(bytes.fromhex(COUNTED_DOWN.replace(" ", "")))
    properties = (PropertySpec("reach", (0x1020,)),)
    spec = Spec(arch="x86-32", base=0x1000, entry=0x1000, input_calls=(InputCall(0x1026),), properties=properties)
    return AutoDriver(load_program(str(file), spec), Limits(seconds=seconds)).run()


def test_what_is_left_of_a_third_is_a_third_less_what_is_done(tmp_path: Path) -> None:
    assert decide(tmp_path).kind == "proved"


@pytest.mark.slow
def test_it_is_the_quotient_that_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "quantities", lambda system, places: [])
    assert decide(tmp_path, 20.0).kind == "unknown"
