"""Programs without instructions: every function is a hook, so that they exist for every instruction set alike."""

from __future__ import annotations

from pathlib import Path

from mcveto.program.image import load_image
from mcveto.program.program import Program, make_program
from mcveto.program.spec import Spec

BASE = 0x10000


def raw_program(folder: Path, isa: str, spec: Spec, content: bytes = bytes(256)) -> Program:
    """A raw blob at `BASE` that starts at its first byte unless the spec says otherwise."""
    path = folder / f"{isa}.bin"
    path.write_bytes(content)
    return make_program(load_image(path, arch=isa, base=BASE, entry=BASE), spec)
