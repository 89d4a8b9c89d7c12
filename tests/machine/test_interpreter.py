"""The interpreter's own business: branches inside instructions, sub-registers, modes, endianness, failing closed."""

from __future__ import annotations

import pytest

from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.faults import Unsupported
from mcveto.machine.interpreter import Interpreter, Step
from mcveto.machine.isa import decoder_for
from mcveto.machine.pcode import Instruction, Op, Space, Transfer, Varnode

from .programs import CODE, DATA, STACK, address_space


class Bench:
    """One instruction at CODE, executed from given registers."""

    def __init__(self, isa: str, code: str, pc: int = CODE, data: bytes = b"", /, **registers: int) -> None:
        self.decoder = decoder_for(isa)
        self.domain = ConcreteDomain(address_space(isa, bytes.fromhex(code), data=data).memory())
        for name, value in registers.items():
            (piece,) = self.decoder.layout.named(name)
            self.domain.registers[piece.cell.number] = value
        self.instruction = self.decoder.decode(pc, bytes.fromhex(code))
        self.step: Step = Interpreter[int](self.decoder).execute(self.instruction, self.domain)

    def __getitem__(self, name: str) -> int:
        value = 0
        for cell, low, bits in self.decoder.layout.named(name):
            value = value << bits | self.domain.registers.get(cell.number, 0) >> low & ((1 << bits) - 1)
        return value


def test_a_conditional_move_that_does_not_move_falls_through() -> None:
    bench = Bench("x86-32", "0f44c3", EAX=1, EBX=2, ZF=0)
    assert bench["EAX"] == 1
    assert bench.step == (Transfer.FALL, CODE + 3)


def test_rep_jumps_to_itself_until_the_count_is_zero() -> None:
    bench = Bench("x86-32", "f3aa", EAX=7, ECX=2, EDI=DATA)
    assert bench.step == (Transfer.JUMP, CODE)
    assert (bench["ECX"], bench["EDI"], bench.domain.load(DATA, 1)) == (1, DATA + 1, 7)
    assert Bench("x86-32", "f3aa", EAX=7, ECX=0, EDI=DATA).step == (Transfer.FALL, CODE + 2)


@pytest.mark.parametrize(
    ("isa", "code", "register", "before", "after"),
    [
        ("x86-32", "b405", "EAX", 0x11223344, 0x11220544),
        ("x86-32", "66b80500", "EAX", 0x11223344, 0x11220005),
        ("x86-64", "b805000000", "RAX", 0x1122334455667788, 5),
        ("x86-64", "b005", "RAX", 0x1122334455667788, 0x1122334455667705),
        ("aarch64", "a0008052", "x0", 0x1122334455667788, 5),
    ],
)
def test_writes_to_parts_of_registers(isa: str, code: str, register: str, before: int, after: int) -> None:
    assert Bench(isa, code, **{register: before})[register] == after


@pytest.mark.parametrize(
    ("isa", "code", "registers", "transfer", "target"),
    [
        ("x86-32", "e8fb000000", {"ESP": STACK + 64}, Transfer.CALL, CODE + 0x100),
        ("x86-32", "ffd0", {"ESP": STACK + 64, "EAX": 0x1234}, Transfer.CALL, 0x1234),
        ("x86-32", "ffe0", {"EAX": 0x1234}, Transfer.JUMP, 0x1234),
        ("ppc32-be", "4e800020", {"LR": 0x1234}, Transfer.RETURN, 0x1234),
        ("ppc32-be", "48000101", {}, Transfer.CALL, CODE + 0x100),
        ("aarch64", "c0035fd6", {"x30": 0x1234}, Transfer.RETURN, 0x1234),
        ("riscv32", "67800000", {"ra": 0x1234}, Transfer.RETURN, 0x1234),
        ("arm", "1eff2fe1", {"lr": 0x1235}, Transfer.RETURN, 0x1235),
        ("arm", "1eff2fe1", {"lr": 0x1234}, Transfer.RETURN, 0x1234),
        ("mips32-be", "03e0000824020001", {"ra": 0x1234}, Transfer.RETURN, 0x1234),
    ],
)
def test_transfers(isa: str, code: str, registers: dict[str, int], transfer: Transfer, target: int) -> None:
    assert Bench(isa, code, **registers).step == (transfer, target)


def test_a_delay_slot_runs_before_the_jump_takes_effect() -> None:
    bench = Bench("mips32-be", "03e0000824020001", ra=0x1234)
    assert bench["v0"] == 1
    assert bench.instruction.size == 8


def test_thumb_keeps_its_mode_bit_in_the_program_counter() -> None:
    bench = Bench("arm", "0120", CODE | 1)
    assert bench.step == (Transfer.FALL, CODE + 2 | 1)
    assert bench["r0"] == 1


def test_an_it_block_is_one_unit_and_obeys_its_condition() -> None:
    assert Bench("arm", "08bf0120", CODE | 1, ZR=1, r0=9)["r0"] == 1
    skipped = Bench("arm", "08bf0120", CODE | 1, ZR=0, r0=9)
    assert skipped["r0"] == 9
    assert skipped.step == (Transfer.FALL, CODE + 4 | 1)


@pytest.mark.parametrize(("isa", "code"), [("ppc32-be", "80830000"), ("ppc32-le", "00008380")])
def test_both_byte_orders(isa: str, code: str) -> None:
    loaded = Bench(isa, code, CODE, bytes([1, 2, 3, 4]), r3=DATA)["r4"]
    assert loaded == (0x01020304 if isa == "ppc32-be" else 0x04030201)


def test_what_is_not_understood_names_the_instruction_and_its_address() -> None:
    with pytest.raises(Unsupported, match=rf"at {CODE:#x}"):
        Bench("x86-32", "0fa2")


def test_an_endless_micro_loop_fails_closed() -> None:
    decoder = decoder_for("x86-32")
    forever = Instruction(CODE, b"", (Op("BRANCH", None, (Varnode(Space.CONST, 0, 4),)),), "loop", "")
    with pytest.raises(Unsupported, match="endless micro-loop"):
        Interpreter[int](decoder).execute(forever, ConcreteDomain(address_space("x86-32", b"\x90").memory()))


def test_reading_a_temporary_before_it_is_written_fails_closed() -> None:
    temporary, eax = Varnode(Space.UNIQUE, 0x100, 4), Varnode(Space.REGISTER, 0, 4)
    stale = Instruction(CODE, b"", (Op("COPY", eax, (temporary,)),), "stale", "")
    with pytest.raises(Unsupported, match="before it is written"):
        Interpreter[int](decoder_for("x86-32")).execute(
            stale, ConcreteDomain(address_space("x86-32", b"\x90").memory())
        )
