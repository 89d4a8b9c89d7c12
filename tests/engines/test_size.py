"""What counts as large: code that can be reached, where that can be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.engines.simulation.size import LARGE, is_large, reached_bytes
from mcveto.program.program import Program, load_program
from mcveto.program.spec import PropertySpec, RegionPermissions, Spec


def program(folder: Path, code: str, permissions: str = "rx", fill: bytes = b"\x90", end: bytes = b"\xc3") -> Program:
    file = folder / "blob"
    file.write_bytes(bytes.fromhex(code.replace(" ", "")).ljust(LARGE, fill) + end)
    spec = Spec(
        arch="x86-32",
        base=0x1000,
        entry=0x1000,
        regions=(RegionPermissions(0x1000, LARGE + 1, permissions),),
        properties=(PropertySpec("reach", (0x1000 + LARGE,)),),
    )
    return load_program(str(file), spec)


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        ("c3", 1),
        ("e801000000 c3 c3", 7),  # a call, and both returns
        ("7403 90 90 90 c3", 6 + 1),  # a branch around three instructions, whose end is counted for both ways
        ("ebfe", 2),
    ],
)
def test_code_that_is_reached(tmp_path: Path, code: str, reached: int) -> None:
    subject = program(tmp_path, code)
    assert reached_bytes(subject, LARGE) == reached
    assert not is_large(subject)


@pytest.mark.parametrize("code", ["90", "ffe0", "ffd0 c3", "e800000000 ffe0"], ids=["all", "jump", "call", "later"])
def test_large_or_not_known(tmp_path: Path, code: str) -> None:
    assert is_large(program(tmp_path, code))


def test_code_that_can_change_does_not_count(tmp_path: Path) -> None:
    assert not is_large(program(tmp_path, "90", "rwx"))


def test_the_rest_of_a_page_does_not_count(tmp_path: Path) -> None:
    assert not is_large(program(tmp_path, "ffe0", fill=b"\0", end=b"\0"))
