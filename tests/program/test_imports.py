"""Imports that the spec binds can be called in a proof; whatever else the loader fills in is never guessed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.program.exits import run_to_end
from mcveto.program.image import load_image
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, make_program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.search import Question, search

BASE = 0x10000
BOUND, OPEN = BASE + 32, BASE + 36


def program(folder: Path, code: str) -> Program:
    """x86-32 code with the cell of an import that is bound as an input, and of one that is not."""
    path = folder / "code.bin"
    cells = {"BOUND": BOUND.to_bytes(4, "little").hex(), "OPEN": OPEN.to_bytes(4, "little").hex()}
    for name, cell in cells.items():
        code = code.replace(name, cell)
    path.write_bytes(bytes.fromhex(code).ljust(64, b"\xc3"))
    image = load_image(path, arch="x86-32", base=BASE, entry=BASE)
    image = replace(image, unspecified=((BOUND, OPEN + 4),), imports={"bound": BOUND, "open": OPEN})
    properties = (PropertySpec("memory-safety"), PropertySpec("no-fault"))
    return make_program(image, Spec(input_calls=(InputCall("bound"),), properties=properties))


CODES = {
    "a bound import is called": ("ff15BOUND c3", "proved"),
    "another import is called": ("ff15OPEN c3", "unknown"),
    "another import is called sometimes": ("ff15BOUND 85c0 7406 ff15OPEN c3", "unknown"),
    "an open cell is read": ("a1OPEN c3", "unknown"),
    "an open cell is read through a pointer": ("ff15BOUND 83e007 8b80OPEN c3", "unknown"),
    "an open cell is near": ("ff15BOUND 83e007 8a80BOUND c3", "unknown"),
    "a bound cell is read through a pointer": ("ff15BOUND 83e003 8a80BOUND c3", "proved"),
}


@pytest.mark.parametrize("engine", ["symex", "dpg"])
@pytest.mark.parametrize("name", CODES)
def test_only_what_is_bound_is_known(name: str, engine: str, tmp_path: Path) -> None:
    code, expected = CODES[name]
    loaded = program(tmp_path, code)
    found = search(lambda: loaded, Question(engine=engine, timeout=20)).verdict
    assert found.kind == expected, found.reason
    assert "self-check failed" not in found.reason


def test_runs_see_the_same(tmp_path: Path) -> None:
    called = program(tmp_path, CODES["a bound import is called"][0])
    assert run_to_end(called, called.machine(InputSource([7])), 10).kind == "halted"
    for name in ("another import is called", "an open cell is read"):
        loaded = program(tmp_path, CODES[name][0])
        assert run_to_end(loaded, loaded.machine(InputSource([7])), 10).kind == "unsupported"
