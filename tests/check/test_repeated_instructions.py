"""String instructions repeat themselves: our emulator leaves them with a turn of its own, processors with the last."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from mcveto.check.counterexample import Counterexample
from mcveto.check.lockstep import Follower
from mcveto.check.native_follower import NativeFollower
from mcveto.check.replay import replay
from mcveto.check.unicorn_follower import UnicornFollower
from mcveto.program.program import Program, load_program
from mcveto.program.spec import PropertySpec, Spec

from .machines import broken
from .test_replay import native_runs

BASE = 0x400000
CODE = BASE + 0x1000
# lea edi,[0x402000]; mov ecx,COUNT; rep stosb; lea esi,[0x402001]; lea edi,[0x402000]; mov ecx,3; repe cmpsb; nop; ret
TEXT = "bf00204000 b9{count:02x}000000 f3aa be01204000 bf00204000 b903000000 f3a6 90 c3"


def subject(folder: Path, count: int) -> Program:
    """An executable that the kernel loads, x86-64, code and 4,096 writable bytes behind it."""
    code = bytes.fromhex(TEXT.format(count=count).replace(" ", ""))
    header = (
        b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, CODE, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    )
    segments = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, CODE, CODE, len(code), len(code), 0x1000)
    segments += struct.pack("<IIQQQQQQ", 1, 6, 0x2000, CODE + 0x1000, CODE + 0x1000, 0, 0x1000, 0x1000)
    file = folder / "repeats.elf"
    file.write_bytes((header + segments).ljust(0x1000, b"\0") + code.ljust(0x1000, b"\0"))
    return load_program(str(file), Spec(entry=CODE, properties=(PropertySpec("reach", (CODE + len(code) - 2,)),)))


@pytest.mark.parametrize("count", [0, 1, 5])
def test_every_machine_confirms(tmp_path: Path, count: int) -> None:
    machines: list[Callable[[Program], Follower]] = [UnicornFollower]
    if native_runs():
        machines.append(NativeFollower)
    result = replay(subject(tmp_path, count), Counterexample("reach"), machines)
    assert result.problem == ""
    assert result.confirmed_by == ("emulator", "unicorn", "native")[: 1 + len(machines)]


@pytest.mark.parametrize(("fault", "shown"), [("memory", "memory 0x402000"), ("stop", "the outcome")])
def test_what_goes_wrong_within_is_noticed(tmp_path: Path, fault: str, shown: str) -> None:
    """The third step of the other machine is the first turn of five, and memory is looked at when all are done."""
    at = {"memory": 8, "stop": 3}[fault]
    found = replay(subject(tmp_path, 5), Counterexample("reach", registers=(("RAX", 7),)), [broken(fault, at)])
    difference = found.comparisons[0].difference
    assert difference is not None and difference.what == shown
    assert difference.pc == CODE + 10
