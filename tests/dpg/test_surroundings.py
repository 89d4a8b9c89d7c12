"""What stops our machine but not the program (system calls, other modules) never becomes a proof."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import mcveto
from mcveto.program.program import load_program
from mcveto.program.spec import PropertySpec, Spec
from mcveto.verdict import Verdict

IMAGES = Path(__file__).parents[1] / "program" / "images"
CODE = 0x8048054


def static_elf(path: Path, code: str) -> str:
    """A static x86 executable that is nothing but `code`, at CODE."""
    content = bytes.fromhex(code)
    header = b"\x7fELF\x01\x01\x01" + bytes(9)
    header += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, CODE, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    size = 84 + len(content)
    path.write_bytes(header + struct.pack("<IIIIIIII", 1, 0, 0x8048000, 0x8048000, size, size, 5, 0x1000) + content)
    return str(path)


def reaches(binary: str, target: int) -> Verdict:
    return mcveto.verify(mcveto.load(binary, targets=[target]), timeout=60)


def test_exit_ends_the_program(tmp_path: Path) -> None:
    binary = static_elf(tmp_path / "exit", "b801000000 cd80 90 c3")  # mov eax, 1; int 0x80; target: nop
    assert reaches(binary, CODE + 7).headline == "PROVED"


@pytest.mark.parametrize("start", ["b804000000", "8d4101 9090"], ids=["write", "any number"])
def test_other_system_calls_are_not_an_end(tmp_path: Path, start: str) -> None:
    binary = static_elf(tmp_path / "call", f"{start} cd80 90 c3")  # mov eax, 4 or lea eax, [ecx+1]
    verdict = reaches(binary, CODE + 7)
    assert verdict.kind == "unknown"
    assert "system call" in verdict.reason


def test_system_call_of_an_unknown_system(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    blob.write_bytes(bytes.fromhex("cd80 90 c3"))
    reach = PropertySpec("reach", (0x1002,))
    program = load_program(str(blob), Spec(arch="x86-32", base=0x1000, entry=0x1000, properties=(reach,)))
    assert mcveto.verify(program, timeout=60).headline == "UNKNOWN(system call at 0x1000)"


@pytest.mark.parametrize("name", ["x86-32.o", "x86-64.o", "x86-32-pic.o", "x86-32.so", "arm.o", "ppc32-be.o"])
def test_imports_are_not_an_end(name: str) -> None:
    """`_start` calls the undefined `nondet` first; everything behind the call may be reached."""
    verdict = mcveto.verify(mcveto.load(str(IMAGES / name), entry="_start", targets=["choose"]), timeout=60)
    assert verdict.kind == "unknown"
    assert "nondet" in verdict.reason or "outside the file" in verdict.reason


@pytest.mark.parametrize("name", ["x86-32.o", "x86-64.o", "ppc32-be.o"])
def test_import_named_as_input(name: str) -> None:
    program = mcveto.load(str(IMAGES / name), entry="_start", targets=["choose"], inputs=["nondet"])
    verdict = mcveto.verify(program, timeout=60)
    assert verdict.headline == "VIOLATED(reach)"
    assert [item.where for item in verdict.inputs] == ["call of nondet"] * 2


def test_value_of_an_import_cell_is_not_ours_to_choose() -> None:
    """The shared object calls through a cell that the loader fills in: no value of it counts as a violation."""
    program = mcveto.load(str(IMAGES / "x86-32.so"), entry="_start", targets=["_start+0x40"])
    assert mcveto.verify(program, timeout=60).kind != "violated"
