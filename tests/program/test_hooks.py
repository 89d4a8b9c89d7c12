"""Input functions and `assume`, for every instruction set, in the emulator, compiled and symbolically."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.emulator import Machine
from mcveto.machine.faults import FaultKind
from mcveto.machine.isa import isa_rows
from mcveto.program.exits import follow_to_end, run_to_end
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.program.spec import InputCall, Spec

from .raw_programs import BASE, raw_program

ISAS = sorted(isa_rows())
CASES = [
    (1, False, 1, 1),
    (1, True, 1, -1),
    (5, False, 31, 31),
    (5, True, 31, -1),
    (8, False, 0x80, 0x80),
    (8, True, 0x80, -0x80),
    (16, True, 0x7FFF, 0x7FFF),
    (32, False, 0xFEDCBA98, 0xFEDCBA98),
    (32, True, 0xFEDCBA98, 0xFEDCBA98 - (1 << 32)),
    (40, False, 0xFEDCBA9876, 0xFEDCBA9876),
    (40, True, 0xFEDCBA9876, 0xFEDCBA9876 - (1 << 40)),
    (64, False, 0x0123456789ABCDEF, 0x0123456789ABCDEF),
]


def result_of(program: Program, bits: int, read: object) -> int:
    """The result as the calling convention passes it, read from one or two registers."""
    row = program.decoder.row
    assert callable(read)
    first = int(read(row.return_registers[0]))
    if bits <= row.address_bits:
        return first
    second = int(read(row.return_registers[1]))
    high, low = (first, second) if row.big_endian else (second, first)
    return high << row.address_bits | low


@pytest.mark.parametrize("isa", ISAS)
def test_input_function(isa: str, tmp_path: Path) -> None:
    for bits, signed, given, expected in CASES:
        program = raw_program(tmp_path, isa, Spec(input_calls=(InputCall(BASE, bits, signed),)))
        row = program.decoder.row
        width = row.address_bits if bits <= row.address_bits else 2 * row.address_bits
        for make in (Machine, CompiledMachine):
            source = InputSource([given])
            machine = program.machine(source, make=make)
            stack_pointer = machine.read(row.stack_pointer)
            outcome = run_to_end(program, machine, 10)
            assert (outcome.kind, outcome.steps) == ("halted", 1)
            assert result_of(program, bits, machine.read) == expected & ((1 << width) - 1)
            popped = row.address_bytes if row.pushes_return_address else 0
            assert machine.read(row.stack_pointer) == stack_pointer + popped
            assert [item.bits for item in source.consumed] == [bits]
        execution = program.concolic(InputSource([given]))
        assert follow_to_end(program, execution, 10).kind == "halted"

        def value(name: str, program: Program = program, execution: object = execution) -> int:
            from mcveto.program.exits import _value

            return _value(program, execution, name)  # type: ignore[arg-type]

        assert result_of(program, bits, value) == expected & ((1 << width) - 1)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("argument", [0, 1, 0x80000000, 0x100, 1 << 32])
def test_assume(isa: str, argument: int, tmp_path: Path) -> None:
    """The argument is a C int: on 64-bit machines the upper half of the register does not count."""
    program = raw_program(tmp_path, isa, Spec(assume=(BASE,)))
    row = program.decoder.row
    for make in (Machine, CompiledMachine):
        machine = program.machine(InputSource(), make=make)
        where = row.arguments[0]
        if where.startswith("stack+"):
            address = machine.read(row.stack_pointer) + int(where.removeprefix("stack+"))
            machine.memory.store(address, argument & 0xFFFFFFFF, 4)
        else:
            (piece,) = program.decoder.layout.named(where)
            machine.registers[piece.cell.number] = argument & row.address_mask
        outcome = run_to_end(program, machine, 10)
        if argument & 0xFFFFFFFF:
            assert outcome.kind == "halted"
        else:
            assert (outcome.kind, outcome.fault) == ("fault", FaultKind.ASSUMPTION_FAILED)


@pytest.mark.parametrize("isa", [name for name in ISAS if len(isa_rows()[name].modes) > 1])
@pytest.mark.parametrize("entry", [BASE, BASE | 1])
def test_hooks_stand_in_both_modes(isa: str, entry: int, tmp_path: Path) -> None:
    """Whether a Thumb function is named by its even or odd address makes no difference; nor does who calls it."""
    for at in (BASE, BASE | 1):
        program = raw_program(tmp_path, isa, Spec(entry=entry, input_calls=(InputCall(at, 8),)))
        machine = program.machine(InputSource([77]))
        assert run_to_end(program, machine, 10).kind == "halted"
        assert machine.read("r0") == 77
        for spec, kind in ((Spec(entry=entry, halt=(at,)), "halted"),):
            stopped = raw_program(tmp_path, isa, spec)
            assert run_to_end(stopped, stopped.machine(InputSource()), 10).steps == 0
            assert run_to_end(stopped, stopped.machine(InputSource()), 10).kind == kind
