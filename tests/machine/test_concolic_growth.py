"""Symbolic execution of a straight trace with stack traffic grows linearly and does not recurse."""

from __future__ import annotations

import gc
import time

import pytest

from mcveto.logic import terms as t
from mcveto.logic.node import table_size
from mcveto.machine.concolic import Assignment, ConcolicExecution
from mcveto.machine.isa import decoder_for

from .programs import CODE, STACK, address_space

# push eax; mov ecx,[esp]; add ecx,eax; mov [esp+4],ecx; pop ebx; cmp ebx,5
STEP = bytes.fromhex("508b0c2401c1894c24045b83fb05")
INSTRUCTIONS = 6


def execute(length: int, symbolic_stack: bool) -> tuple[int, float]:
    """(terms made, processor seconds) of a trace of `length` instructions, decoded beforehand."""
    code = STEP * (length // INSTRUCTIONS)
    decoder = decoder_for("x86-32")
    space = address_space("x86-32", code + b"\xf4")
    pointer = decoder.layout.by_name["ESP"]
    registers = {} if symbolic_stack else {pointer.number: t.const(STACK + 0x800, 32)}
    for offset in range(0, len(code), len(STEP)):
        at = CODE + offset
        while at < CODE + offset + len(STEP):
            at += decoder.decode(at, code[at - CODE : at - CODE + 16] + bytes(16)).size
    execution = ConcolicExecution(
        decoder,
        space,
        CODE,
        Assignment({"EAX": 7, "ESP": STACK + 0x800}),
        registers=registers,
        halts=[CODE + len(code)],
    )
    gc.collect()
    before, started = table_size(), time.process_time()
    assert execution.run(1 << 30) == "halted"
    assert execution.steps == length // INSTRUCTIONS * INSTRUCTIONS
    return table_size() - before, time.process_time() - started


@pytest.mark.parametrize("symbolic_stack", [False, True])
def test_twice_the_length_costs_about_twice_as_much(symbolic_stack: bool) -> None:
    short = [execute(1_248, symbolic_stack) for _ in range(2)]
    long = [execute(2_496, symbolic_stack) for _ in range(2)]
    assert long[0][0] <= 2.3 * short[0][0] + 100
    assert min(seconds for _, seconds in long) <= 2.3 * max(seconds for _, seconds in short)
