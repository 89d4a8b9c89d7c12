"""qemu-user follows compiled code of other processors step by step, and notices what differs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.check.counterexample import Counterexample
from mcveto.check.gdb_remote import _expanded
from mcveto.check.qemu_follower import _PROCESSORS, QemuFollower
from mcveto.check.replay import replay
from mcveto.machine.trace import TraceStep

from .test_followers import NAMES, with_late_target

HERE = {isa for isa, processor in _PROCESSORS.items() if shutil.which(processor.command)}


def isa_of(name: str) -> str:
    return name.rpartition("-")[0].removesuffix("-thumb")


def installed(name: str) -> str:
    if isa_of(name) not in HERE:
        pytest.skip(f"no qemu-user for {isa_of(name)} is installed")
    return name


@pytest.mark.parametrize("name", [name for name in NAMES if isa_of(name) in _PROCESSORS])
def test_qemu_follows(name: str) -> None:
    result = replay(with_late_target(installed(name)), Counterexample("reach"), [QemuFollower])
    (comparison,) = result.comparisons
    assert result.violation is not None and result.violation.steps > 100
    assert comparison.agrees, str(comparison)
    assert result.confirmed_by == ("emulator", "qemu")


def broken(fault: str, at: int) -> type[QemuFollower]:
    """qemu-user that has another register, program counter or byte after its step `at`."""

    class Broken(QemuFollower):
        steps = 0

        def step(self, step: TraceStep) -> int:
            pc = super().step(step)
            self.steps += 1
            if self.steps == at and fault == "register":
                name = self._row.general[5]
                self.set_registers({name: self.registers()[name] ^ 1}, pc)
            return pc + 4 if self.steps == at and fault == "pc" else pc

        def read(self, address: int, size: int) -> bytes:
            content = super().read(address, size)
            return bytes(byte ^ 1 for byte in content) if fault == "memory" and self.steps >= at else content

    return Broken


@pytest.mark.parametrize("fault", ["register", "pc", "memory"])
@pytest.mark.parametrize("name", ["ppc32-be-O2", "mips32-le-O2"])
def test_the_first_difference_is_told(name: str, fault: str) -> None:
    result = replay(with_late_target(installed(name)), Counterexample("reach"), [broken(fault, 20)])
    (comparison,) = result.comparisons
    assert not result.confirmed and comparison.difference is not None
    assert comparison.difference.step >= 19
    if fault != "memory":
        assert comparison.difference.step == 19


def test_another_file_is_not_the_program(tmp_path: Path) -> None:
    """A byte of the file that was changed since it was loaded."""
    program = with_late_target(installed("riscv32-O2"))
    path = Path(program.image.path)
    content = bytearray(path.read_bytes())
    offset = content.index(program.image.segments[0].content[-64:]) + 8
    content[offset] ^= 1
    changed = tmp_path / "changed.elf"
    changed.write_bytes(content)
    other = replace(program, image=replace(program.image, path=str(changed)))
    (comparison,) = replay(other, Counterexample("reach"), [QemuFollower]).comparisons
    assert comparison.difference is not None and comparison.difference.what == "the entry state"


def test_what_cannot_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = with_late_target("ppc32-be-O2")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (comparison,) = replay(program, Counterexample("reach"), [QemuFollower]).comparisons
    assert comparison.skipped == "qemu-ppc is not installed"
    (comparison,) = replay(with_late_target("x86-32-O2"), Counterexample("reach"), [QemuFollower]).comparisons
    assert "x86-32" in comparison.skipped


def test_run_lengths_are_expanded() -> None:
    assert _expanded("0* 1*!x") == "0000" + "11111" + "x"
