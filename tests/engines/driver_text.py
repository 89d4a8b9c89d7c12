"""Drivers as assembly text: asked whether they come to `reached`, with inputs from `choice`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec

needs_assembler = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")

_BEGIN = "\t.globl _start\n_start:\n"
_REACHED = "\t.text\nreached:\n\tnop\n\tret\n"
_CHOICE = "\t.text\nchoice:\n\txorl\t%eax, %eax\n\tret\n"


def reaching(
    folder: Path, text: str, arch: str | None = None, entry: str = "_start", halt: tuple[str, ...] = ()
) -> Program:
    """The program of a text that has everything but, perhaps, `choice`."""
    path = folder / "text.s"
    path.write_text(text)
    reach = PropertySpec("reach", ("reached",))
    spec = Spec(arch=arch, entry=entry, input_calls=(InputCall("choice"),), halt=halt, properties=(reach,))
    return load_program(str(path), spec)


def x86_driver(folder: Path, text: str) -> Program:
    """The program of a text for x86 that begins at its first instruction. It gets a function `choice`, and `reached`
    behind its code unless it has one among it."""
    reached = "" if "\nreached:\n" in text else _REACHED
    return reaching(folder, f"{_BEGIN}{text}{reached}{_CHOICE}")
