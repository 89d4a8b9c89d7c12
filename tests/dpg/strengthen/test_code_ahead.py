"""What is behind a loop that no run leaves is explored without running it, and nothing is claimed by that."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.driver import Limits
from mcveto.dpg.proof import Proof
from mcveto.program.image import load_image
from mcveto.program.program import Program, make_program
from mcveto.program.spec import PropertySpec, RegionPermissions, Spec

BASE = 0x10000
FAR = 0x0FFFFFFF


def long_loop(folder: Path, branch: int) -> Program:
    """eax = 0; while (eax < FAR) eax += 2; test al, 1; branch ERR: some 134 million turns."""
    code = b"".join(
        (
            b"\x31\xc0",  # 0: xor eax, eax
            b"\x3d" + struct.pack("<I", FAR),  # 2: cmp eax, FAR
            b"\x73\x05",  # 7: jae 14
            b"\x83\xc0\x02",  # 9: add eax, 2
            b"\xeb\xf4",  # 12: jmp 2
            b"\xa8\x01",  # 14: test al, 1
            bytes((branch, 0x01)),  # 16: jcc 19
            b"\xc3",  # 18: ret
            b"\x90\xc3",  # 19: ERR
        )
    )
    path = folder / "loop.bin"
    path.write_bytes(code)
    spec = Spec(regions=(RegionPermissions(BASE, len(code), "rx"),), properties=(PropertySpec("reach", (BASE + 19,)),))
    return make_program(load_image(path, arch="x86-32", base=BASE, entry=BASE), spec)


def test_the_code_behind_a_long_loop_is_part_of_the_proof(tmp_path: Path) -> None:
    verdict = AutoDriver(long_loop(tmp_path, branch=0x75), Limits(seconds=250)).run()
    assert verdict.kind == "proved"
    assert isinstance(verdict.proof, Proof)
    assert BASE + 14 in {node.location.pc for node in verdict.proof.nodes}


@pytest.mark.parametrize("seconds", [3.0])
def test_a_target_behind_a_long_loop_is_not_proved_away(tmp_path: Path, seconds: float) -> None:
    verdict = AutoDriver(long_loop(tmp_path, branch=0x74), Limits(seconds=seconds)).run()
    assert verdict.kind != "proved"
