"""System calls as events: at every instruction that makes one, by number, with arguments, before the run ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.errors import UsageError
from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.emulator import Machine
from mcveto.machine.isa import decoder_for
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.program.spec import Spec
from mcveto.property.ghost import watch
from mcveto.property.system_calls import WatchingDecoder
from mcveto.property.typestate_parser import parse_typestate
from tests.program.raw_programs import BASE, raw_program

# A system call, the register of its number and of its second argument, and the number of write.
CALLS = {
    "x86-32": ("cd80", "EAX", "ECX", 4),
    "x86-64": ("0f05", "RAX", "RSI", 1),
    "ppc32-be": ("44000002", "r0", "r4", 4),
    "ppc32-le": ("02000044", "r0", "r4", 4),
    "arm": ("000000ef", "r7", "r1", 4),
    "aarch64": ("010000d4", "x8", "x1", 64),
    "riscv32": ("73000000", "a7", "a1", 64),
    "riscv64": ("73000000", "a7", "a1", 64),
    "mips32-be": ("0000000c", "v0", "a1", 4004),
    "mips32-le": ("0c000000", "v0", "a1", 4004),
}
AUTOMATON = """automaton calls
event write(file, from) = syscall write
event other = syscall 777 | syscall 778
states s
start s
error wrote "wrote 5"
error was-other
s -> wrote on write(_, 5)
s -> was-other on other
"""


def elf(folder: Path, isa: str, code: str) -> Program:
    """The call, and nothing that is needed behind it, as if it came from an ELF file."""
    program = raw_program(folder, isa, Spec(), bytes.fromhex(code) + bytes(64))
    return replace(program, image=replace(program.image, format="elf"))


@pytest.mark.parametrize("isa", CALLS)
@pytest.mark.parametrize("make", [Machine, CompiledMachine])
def test_by_number_and_argument(tmp_path: Path, isa: str, make: type[Machine]) -> None:
    code, number_register, argument, write = CALLS[isa]
    program = elf(tmp_path, isa, code)
    watched = watch(program, parse_typestate(AUTOMATON))
    targets = {meaning: target for target, (_, meaning) in watched.errors.items()}
    layout = program.decoder.layout
    for number, value, expected in [
        (write, 5, "wrote 5"),
        (write, 6, None),
        (777, 0, "was-other"),
        (778, 5, "was-other"),
        (779, 5, None),
    ]:
        machine = watched.program.machine(InputSource(()), make=make)
        for name, content in ((number_register, number), (argument, value)):
            (piece,) = layout.named(name)
            machine.registers[piece.cell.number] = content
        outcome = machine.run(10)
        if expected is None:
            assert outcome.kind == "fault" and outcome.fault is not None and outcome.fault.label == "system-call"
        else:
            assert outcome.kind == "target" and outcome.pc == targets[expected]
    decoder = watched.program.decoder
    assert isinstance(decoder, WatchingDecoder)
    assert list(decoder.places) == [BASE]


def test_conditional_calls(tmp_path: Path) -> None:
    """A call that is not made is no event."""
    program = elf(tmp_path, "arm", "0000000f")  # swieq 0
    watched = watch(program, parse_typestate(AUTOMATON))
    for zero, is_made in ((1, True), (0, False)):
        machine = watched.program.machine(InputSource(()))
        for name, content in (("r7", 777), ("ZR", zero)):
            (piece,) = program.decoder.layout.named(name)
            machine.registers[piece.cell.number] = content
        machine.run(1)
        assert machine.pc == (list(watched.errors)[1] if is_made else BASE + 4)


@pytest.mark.parametrize(("isa", "code"), [("x86-64", "cd80"), ("x86-32", "0f05"), ("arm", "040090ef")])
def test_other_numberings_are_not_guessed(tmp_path: Path, isa: str, code: str) -> None:
    watched = watch(elf(tmp_path, isa, code), parse_typestate(AUTOMATON))
    outcome = watched.program.machine(InputSource(())).run(10)
    assert outcome.kind == "unsupported" and "another numbering" in outcome.detail


def test_two_automata_watch_the_same_call(tmp_path: Path) -> None:
    program = elf(tmp_path, "x86-32", "cd80")
    first = watch(program, parse_typestate(AUTOMATON), None, 0)
    quiet = AUTOMATON.replace("s -> wrote on write(_, 5)\n", "")
    for one, other in ((AUTOMATON, quiet), (quiet, AUTOMATON)):
        first = watch(program, parse_typestate(one), None, 0)
        second = watch(first.program, parse_typestate(other), None, 1)
        machine = second.program.machine(InputSource(()))
        for name, content in (("EAX", 4), ("ECX", 5)):
            (piece,) = program.decoder.layout.named(name)
            machine.registers[piece.cell.number] = content
        outcome = machine.run(3)
        assert outcome.kind == "target"
        assert outcome.pc in (first.errors if one is AUTOMATON else second.errors)


def test_refusals(tmp_path: Path) -> None:
    program = elf(tmp_path, "x86-32", "cd80")
    with pytest.raises(UsageError, match="ELF files only"):
        watch(raw_program(tmp_path, "x86-32", Spec()), parse_typestate(AUTOMATON))
    with pytest.raises(UsageError, match="the same system call, 4"):
        watch(program, parse_typestate(AUTOMATON.replace("syscall 777", "syscall 4")))
    with pytest.raises(UsageError, match="give its number"):
        watch(program, parse_typestate(AUTOMATON.replace("syscall write", "syscall wirte")))
    with pytest.raises(UsageError, match="argument 7 of a system call"):
        watch(program, parse_typestate(AUTOMATON.replace("(file, from)", "").replace("(_, 5)", "(_,_,_,_,_,_,x)")))


def test_unwatched_programs_are_as_before() -> None:
    code = bytes.fromhex("cd80") + bytes(16)
    assert len(decoder_for("x86-32").decode(0x1000, code).ops) == 1
