"""Permissions that the spec gives to parts of an image."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.errors import UsageError
from mcveto.machine.memory import EXECUTE, READ, WRITE
from mcveto.program.spec import RegionPermissions, Spec, parse_spec

from .raw_programs import BASE, raw_program


def permissions(folder: Path, *regions: RegionPermissions) -> dict[int, int]:
    program = raw_program(folder, "x86-32", Spec(regions=regions), bytes(range(256)))
    found: dict[int, int] = {}
    for offset in (0, 15, 16, 31, 32, 255):
        region = program.space.region_at(BASE + offset)
        assert region is not None
        assert program.space.initial_byte(BASE + offset) == offset
        found[offset] = int(region.permissions)
    return found


def test_a_region_in_the_middle(tmp_path: Path) -> None:
    everything = READ | WRITE | EXECUTE
    found = permissions(tmp_path, RegionPermissions(BASE + 16, 16, "rx"))
    assert found == {
        0: everything,
        15: everything,
        16: READ | EXECUTE,
        31: READ | EXECUTE,
        32: everything,
        255: everything,
    }


def test_later_regions_overrule_earlier_ones(tmp_path: Path) -> None:
    found = permissions(tmp_path, RegionPermissions(BASE, 256, "rx"), RegionPermissions(BASE + 32, 224, "rw"))
    assert found[31] == READ | EXECUTE
    assert found[32] == found[255] == READ | WRITE


def test_what_the_spec_says_is_an_assumption(tmp_path: Path) -> None:
    program = raw_program(tmp_path, "x86-32", Spec(regions=(RegionPermissions(BASE, 16, "rx"),)))
    assert any(f"{BASE:#x}-{BASE + 16:#x} is rx" in line for line in program.assumptions)


@pytest.mark.parametrize("size", [257, 1 << 40])
def test_a_region_must_be_inside_the_image(tmp_path: Path, size: int) -> None:
    with pytest.raises(UsageError, match="not wholly inside"):
        permissions(tmp_path, RegionPermissions(BASE, size, "rx"))


@pytest.mark.parametrize(
    "region",
    [
        {"at": 0, "size": 4},
        {"at": 0, "size": 4, "permissions": "rr"},
        {"at": 0, "size": 4, "permissions": "q"},
        {"at": 0, "size": 0, "permissions": "r"},
    ],
)
def test_bad_regions_are_refused(region: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        parse_spec({"regions": [region]})
