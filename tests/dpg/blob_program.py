"""A program from the bytes of some x86-32 code, with one input function and one target."""

from __future__ import annotations

from pathlib import Path

from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, RegionPermissions, Spec

BASE = 0x1000


def blob_program(folder: Path, content: bytes, choice: int, target: int) -> Program:
    """The code begins at BASE, cannot be written, and `choice` and `target` are addresses."""
    file = folder / "blob"
    file.write_bytes(content)
    spec = Spec(
        arch="x86-32",
        base=BASE,
        entry=BASE,
        input_calls=(InputCall(choice),),
        regions=(RegionPermissions(BASE, len(content), "rx"),),
        properties=(PropertySpec("reach", (target,)),),
    )
    return load_program(str(file), spec)
