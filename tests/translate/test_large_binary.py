"""A binary of a megabyte of this machine: no instruction that another disassembler finds is lost on the way to C."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mcveto.program.program import load_program
from mcveto.program.spec import Spec
from mcveto.translate.to_c import CTranslation

MEGABYTE = 1_000_000
X86_64 = b"\x7fELF\x02\x01"
_LINE = re.compile(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t?(.*)$")
_COMMENT = re.compile(r"^  /\* 0x([0-9a-f]+): ([0-9a-f]+)  ")


def large_binary() -> Path:
    for name in ("/bin/bash", "/usr/bin/git", "/usr/bin/perl", "/usr/bin/gdb"):
        path = Path(name)
        if path.exists() and path.stat().st_size >= MEGABYTE:
            head = path.read_bytes()[:20]
            if head.startswith(X86_64) and head[18] == 62:
                return path
    pytest.skip("no large x86-64 binary")


def disassembled(path: Path) -> dict[int, bytes]:
    """What objdump finds in the sections of code, by addresses of the file."""
    if shutil.which("objdump") is None:
        pytest.skip("needs objdump")
    done = subprocess.run(["objdump", "-d", "-w", "-z", str(path)], capture_output=True, text=True, check=True)
    found: dict[int, bytes] = {}
    for line in done.stdout.splitlines():
        match = _LINE.match(line)
        if match and "(bad)" not in match[3]:
            found[int(match[1], 16)] = bytes.fromhex(match[2])
    return found


@pytest.mark.slow
def test_every_instruction_is_translated_or_listed() -> None:
    path = large_binary()
    expected = disassembled(path)
    assert len(expected) > 50_000
    program = load_program(str(path), Spec())
    translation = CTranslation(program)
    bias = 0 if min(expected) >= program.image.base else program.image.base
    written: dict[int, set[bytes]] = {}
    for line in translation.lines():
        match = _COMMENT.match(line)
        if match:
            written.setdefault(int(match[1], 16), set()).add(bytes.fromhex(match[2]))
    summary = translation.summary
    lost = [range(start, end) for start, end, _ in summary.lost]
    missing = [
        f"{address + bias:#x} {content.hex()}"
        for address, content in expected.items()
        if content not in written.get(address + bias, ()) and not any(address + bias in gap for gap in lost)
    ]
    assert not missing, missing[:20]
    assert sum(map(len, written.values())) + len(program.hooks) >= summary.instructions > 50_000
