"""Traces: expansion, slicing, nested-word kinds, compactness, access logs."""

from __future__ import annotations

import pickle
import zlib
from itertools import pairwise

import pytest

from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.emulator import Machine
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import Memory, RegionSpec
from mcveto.machine.pcode import Instruction, Transfer
from mcveto.machine.trace import CHUNK_PATHS, Access, Trace, TraceStep

CODE, DATA, STACK = 0x1000, 0x8000, 0xF000


def machine(kind: type[Machine], code: str, log_accesses: bool = False) -> Machine:
    decoder = decoder_for("x86-32")
    content = bytes.fromhex(code)
    memory = Memory(
        [
            RegionSpec("code", CODE, 0x1000, 5, content),
            RegionSpec("data", DATA, 0x1000, 6, bytes(range(256))),
            RegionSpec("stack", STACK, 0x1000, 6),
        ],
        32,
        False,
    )
    registers = {decoder.layout.by_name["ESP"].number: STACK + 0x800}
    return kind(decoder, memory, registers, CODE, halts=[CODE + len(content)], log_accesses=log_accesses)


# mov ecx, 0x50 ; L: call F ; dec ecx ; jnz L ; jmp END ; F: inc eax ; ret
CALLS = "b950000000" + "e805000000" + "49" + "75f8" + "eb02" + "40c3"


@pytest.mark.parametrize("kind", [Machine, CompiledMachine])
def test_every_step_with_its_bytes_transfer_and_successor(kind: type[Machine]) -> None:
    traced = machine(kind, CALLS)
    assert traced.run(1000).kind == "halted"
    steps = list(traced.trace)
    assert steps[0] == TraceStep(CODE, bytes.fromhex("b950000000"), Transfer.FALL, CODE + 5)
    assert steps[1] == TraceStep(CODE + 5, bytes.fromhex("e805000000"), Transfer.CALL, CODE + 15)
    assert steps[3] == TraceStep(CODE + 16, b"\xc3", Transfer.RETURN, CODE + 10)
    assert steps[5] == TraceStep(CODE + 11, b"\x75\xf8", Transfer.JUMP, CODE + 5)
    assert steps[-1] == TraceStep(CODE + 13, b"\xeb\x02", Transfer.JUMP, CODE + 17)
    assert len(steps) == len(traced.trace) == 1 + 5 * 0x50 + 1
    for step, following in pairwise(steps):
        assert step.next_pc == following.pc
    assert [step.pc for step in steps] == list(traced.trace.pcs())


@pytest.mark.parametrize("kind", [Machine, CompiledMachine])
def test_indices_and_slices(kind: type[Machine]) -> None:
    traced = machine(kind, CALLS)
    traced.run(300)
    steps = list(traced.trace)
    for at in (0, 1, 57, 299, -1, -300):
        assert traced.trace[at] == steps[at]
    for part in (slice(0, 5), slice(100, 140), slice(-7, None), slice(10, 200, 7), slice(50, 40), slice(20, 5, -3)):
        assert traced.trace[part] == steps[part]
    with pytest.raises(IndexError):
        traced.trace[300]


def test_calls_and_returns_nest() -> None:
    traced = machine(CompiledMachine, CALLS)
    traced.run(1000)
    kinds = [position.kind for position in traced.trace.positions()]
    assert kinds.count("call") == kinds.count("return") == 0x50
    depth = 0
    for kind in kinds:
        depth += {"call": 1, "return": -1}.get(kind, 0)
        assert depth in (0, 1)


def test_a_million_steps_of_a_loop_take_less_than_a_megabyte() -> None:
    # L: add eax, ecx ; xor edx, eax ; test al, 1 ; jz S ; inc ebx ; S: dec ecx ; jmp L
    traced = machine(CompiledMachine, "01c8" + "31c2" + "a801" + "7401" + "43" + "49" + "ebf4")
    assert traced.run(1_000_000).steps == 1_000_000
    assert len(traced.trace) == 1_000_000
    assert len(pickle.dumps(traced.trace)) < 1_000_000
    assert traced.trace[999_999].next_pc == traced.pc
    middle = traced.trace[500_000:500_003]
    assert middle[0].next_pc == middle[1].pc
    assert middle[1].next_pc == middle[2].pc


def test_chunks_keep_the_order() -> None:
    trace = Trace(0)
    instructions = [Instruction(pc, b"\x90", (), "nop", "") for pc in range(7)]
    numbers = [trace.number_of(((one, Transfer.FALL),)) for one in instructions]
    count = 2 * CHUNK_PATHS + 5
    for step in range(count):
        trace.record(numbers[step * step % 7], (step + 1) ** 2 % 7)
    assert len(trace) == count
    assert [step.pc for step in trace] == [step * step % 7 for step in range(count)]
    assert trace[CHUNK_PATHS + 3].pc == (CHUNK_PATHS + 3) ** 2 % 7
    assert zlib.crc32(bytes(trace.pcs())) == zlib.crc32(bytes(step * step % 7 for step in range(count)))


@pytest.mark.parametrize("kind", [Machine, CompiledMachine])
def test_memory_accesses_on_request(kind: type[Machine]) -> None:
    # mov eax, [DATA+4] ; push eax
    code = "a104800000" + "50"
    traced = machine(kind, code, log_accesses=True)
    traced.run(10)
    assert traced.trace.accesses(0) == (Access(DATA + 4, 4, 0x07060504, False),)
    assert traced.trace.accesses(1) == (Access(STACK + 0x7FC, 4, 0x07060504, True),)
    silent = machine(kind, code)
    silent.run(10)
    assert silent.trace.accesses(0) == ()


@pytest.mark.parametrize("kind", [Machine, CompiledMachine])
@pytest.mark.parametrize("steps", [3, 4, 200, 1000])
def test_calls_and_returns_alone_are_those_of_the_trace(kind: type[Machine], steps: int) -> None:
    traced = machine(kind, CALLS)
    traced.run(steps)
    expected = [(n, step) for n, step in enumerate(traced.trace) if step.transfer in (Transfer.CALL, Transfer.RETURN)]
    assert list(traced.trace.calls_and_returns()) == expected
    assert {i.pc for i in traced.trace.instructions()} == set(traced.trace.pcs())
