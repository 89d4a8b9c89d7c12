"""Steps into targets: a target counts wherever it is, and even if it is also a halt."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg.driver import Driver, Limits, Method
from mcveto.dpg.location import Fold
from mcveto.program.image import load_image
from mcveto.program.program import Program, make_program
from mcveto.program.spec import InputCall, PropertySpec, RegionPermissions, Spec

BASE = 0x10000


def program(folder: Path, halts: tuple[int, ...], regions: tuple[RegionPermissions, ...]) -> Program:
    """eax = input; if (eax == 7) goto 0x10010, where the target is; return."""
    code = (
        bytes.fromhex("e81a000000 83f807 7406 c3").ljust(16, b"\x90") + bytes.fromhex("c3").ljust(15, b"\x90") + b"\xc3"
    )
    path = folder / "program.bin"
    path.write_bytes(code)
    spec = Spec(
        input_calls=(InputCall(BASE + 0x1F),),
        halt=halts,
        regions=regions,
        properties=(PropertySpec("reach", (BASE + 0x10,)),),
    )
    return make_program(load_image(path, arch="x86-32", base=BASE, entry=BASE), spec)


@pytest.mark.parametrize("fold", [Fold.FRAME, Fold.PC])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_target_that_is_also_a_halt_is_reached(tmp_path: Path, fold: Fold, seed: int) -> None:
    subject = program(tmp_path, (BASE + 0x10,), (RegionPermissions(BASE, 0x20, "rx"),))
    verdict = Driver(subject, Limits(seconds=60), seed, method=Method(fold=fold)).run()
    assert (verdict.kind, verdict.about) == ("violated", "reach")


@pytest.mark.parametrize("fold", [Fold.FRAME, Fold.PC])
def test_a_target_where_nothing_can_be_executed_is_reached(tmp_path: Path, fold: Fold) -> None:
    regions = (RegionPermissions(BASE, 0x10, "rx"), RegionPermissions(BASE + 0x10, 0x10, "r"))
    subject = program(tmp_path, (), regions)
    verdict = Driver(subject, Limits(seconds=60), method=Method(fold=fold)).run()
    assert (verdict.kind, verdict.about) == ("violated", "reach")
