"""Summaries of calls: they say what following the calls says."""

from __future__ import annotations

import struct
import time

import pytest
from hypothesis import HealthCheck, given, settings

from mcveto.dpg.location import Blocks
from mcveto.engines.simulation.simulate import Simulation, simulate
from mcveto.engines.simulation.summaries import Summaries
from mcveto.engines.symex import symex
from mcveto.logic import terms as t
from mcveto.verdict import Verdict

from .random_programs import CODE, DATA, FUNCTION, HALT, TARGET, RandomProgram, calling_programs, exhaustive


def summarised(program: RandomProgram, used: list[int]) -> Verdict:
    """Every call is summarised where that is possible."""
    ends = Summaries.ends

    def counted(self: Summaries, *arguments: object) -> object:
        used.append(1)
        return ends(self, *arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcveto.engines.simulation.simulate.FEWEST_BLOCKS", 1)
        patch.setattr(Summaries, "is_due", lambda self, function, _: self._failures.get(function, 0) < 3)
        patch.setattr(Summaries, "ends", counted)
        return simulate(program.load(), 20.0, is_recorded=False)


def check(program: RandomProgram) -> tuple[str, int]:
    ends = exhaustive(program.load())
    used: list[int] = []
    verdict = summarised(program, used)
    bad = ends & {"target", "return-address"}
    if verdict.kind == "violated" and not bad:
        # Undefined flags make more runs than the sixteen.
        assert symex(program.load(), 20.0).kind != "proved"
    elif verdict.kind == "proved":
        assert not bad and "limit" not in ends and "unsupported" not in ends
    return verdict.kind, len(used)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program=calling_programs())
def test_summaries_agree_with_all_runs(program: RandomProgram) -> None:
    check(program)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=calling_programs())
def test_summaries_agree_with_all_runs_of_many(program: RandomProgram) -> None:
    check(program)


def violating(code: bytes, function: bytes, calls: int = 1) -> None:
    """A program with a run that reaches the target is not proved, although its calls are summarised."""
    program = RandomProgram(code, function, bytes(64), False)
    assert "target" in exhaustive(program.load())
    used: list[int] = []
    assert summarised(program, used).kind != "proved"
    assert len(used) >= calls


def call(code: bytes) -> bytes:
    return code + b"\xe8" + struct.pack("<i", FUNCTION - (CODE + len(code) + 5))


def end(code: bytes, condition: int) -> bytes:
    """jcc TARGET; jmp HALT"""
    code += bytes([0x0F, 0x80 | condition]) + struct.pack("<i", TARGET - (CODE + len(code) + 6))
    return code + b"\xe9" + struct.pack("<i", HALT - (CODE + len(code) + 5))


EQUAL, UNEQUAL = 4, 5


def test_a_cell_that_the_call_reads_has_changed() -> None:
    flag = struct.pack("<I", DATA)
    code = call(b"\xc6\x05" + flag + b"\x00")  # mov byte [flag], 0; call
    code = call(code + b"\xc6\x05" + flag + b"\x01")  # mov byte [flag], 1; call
    violating(end(code + b"\x83\xf8\x01", EQUAL), b"\x0f\xb6\x05" + flag + b"\xc3", 2)  # movzx eax, byte [flag]


def test_a_register_that_the_call_may_leave_alone() -> None:
    """Neither read nor certainly written: what it was before the call still matters."""
    code = call(b"\x83\xe0\x0f" + b"\xba\x03\0\0\0")  # mov edx, 3; call
    code = call(code + b"\xba\x09\0\0\0")  # mov edx, 9; call
    function = b"\x83\xf8\x07\x75\x05\xba\x05\0\0\0\xc3"  # if (eax == 7) edx = 5
    violating(end(code + b"\x83\xfa\x09", EQUAL), function, 2)


def test_a_register_that_one_instruction_may_leave_alone() -> None:
    """The same within a block: only one of the two ways through a conditional move writes."""
    code = call(b"\x83\xe0\x0f" + b"\xb9\x05\0\0\0" + b"\xba\x03\0\0\0")  # mov ecx, 5; mov edx, 3; call
    code = call(code + b"\xba\x09\0\0\0")  # mov edx, 9; call
    function = b"\x83\xf8\x07\x0f\x44\xd1\xc3"  # cmp eax, 7; cmove edx, ecx
    violating(end(code + b"\x83\xfa\x09", EQUAL), function, 2)


def test_a_loop_changes_what_the_call_got() -> None:
    """That the second turn looks like the first with other values does not make the values the same."""
    program = RandomProgram(b"\xf4", b"\xc3", bytes(64), False).load()
    simulation = Simulation(program, Blocks(program), time.monotonic() + 20.0, None)
    simulation.record_nothing()
    (register,) = program.decoder.layout.named("EAX")
    got = t.var("got", 32)
    old, new = simulation._executor.initial(), simulation._executor.initial()
    old.registers[register.cell.number], new.registers[register.cell.number] = got, t.add(got, t.const(1, 32))
    assert simulation._covering.covers(old, new) == {got: t.add(got, t.const(1, 32))}
    assert simulation._covering.covers(old, new, {got}) is None
    assert simulation._covering.covers(old, old, {got}) is not None


def test_what_lies_below_the_stack_is_lost() -> None:
    code = call(b"\x83\xe0\x0f" + b"\xc7\x44\x24\xf8\x03\0\0\0")  # mov dword [esp - 8], 3; call
    violating(end(code + b"\x83\x7c\x24\xf8\x03", UNEQUAL), b"\x89\x44\x24\xfc\xc3")  # mov [esp - 4], eax


def test_a_frame_may_be_deeper_in_the_stack() -> None:
    """The address of a word of the caller, at another depth: the store goes where the second call says."""
    code = b"\x83\xe0\x0f\x57\x57\x57\x6a\x01"  # push edi, three times; push 1
    code = call(code + b"\x8d\x14\x24")  # lea edx, [esp]; call
    code = call(code + b"\x6a\x02" + b"\x8d\x14\x24")  # push 2; lea edx, [esp]; call
    code += b"\x58\x59\x83\xf9\x05\x0f\x84\x05\0\0\0\xe9"  # pop eax; pop ecx; cmp ecx, 5; je +5; jmp HALT
    code += struct.pack("<i", HALT - (CODE + len(code) + 4)) + b"\x83\xf8\x05"  # cmp eax, 5
    violating(end(code, EQUAL), b"\xc7\x02\x05\0\0\0\xc3", 2)  # mov dword [edx], 5


def test_a_read_somewhere_in_the_stack_sees_stores_to_the_frame() -> None:
    """One pointer is somewhere in a buffer of the caller, the other at a fixed place of it."""
    code = b"\x83\xe0\x7f\x81\xec\0\x01\0\0"  # and eax, 0x7f; sub esp, 0x100
    code = call(code + b"\x8d\x14\x04" + b"\x8d\x4c\x24\x03")  # lea edx, [esp + eax]; lea ecx, [esp + 3]; call
    # ebx = byte [edx]; byte [ecx] = ebx + 1; return byte [edx] - ebx
    function = b"\x0f\xb6\x1a" + b"\x8d\x43\x01" + b"\x88\x01" + b"\x0f\xb6\x02" + b"\x29\xd8\xc3"
    violating(end(code + b"\x83\xf8\x01", EQUAL), function, 0)


def test_a_frame_that_leaves_the_stack_is_followed() -> None:
    """Below the stack is something else, or nothing: the second call faults."""
    stack = next(r for r in RandomProgram(b"\xf4", b"\xc3", bytes(64), False).load().space.regions if r.name == "stack")
    counts = []
    for start in (stack.start + 8, stack.start + 64):
        code = call(b"\x83\xe0\x0f")
        code = call(code + b"\xbc" + struct.pack("<I", start))  # mov esp, start; call
        used: list[int] = []
        summarised(RandomProgram(end(code, EQUAL), b"\x89\x44\x24\xf0\xc3", bytes(64), False), used)  # [esp - 16] = eax
        counts.append(len(used))
    # Where the second call does not fault the target is reached, and it is gone through more than once.
    assert counts[0] == 1 and counts[1] >= 2 and counts[1] % 2 == 0


def test_a_call_that_is_made_once_more_is_the_first() -> None:
    """Going back to before a call must not make a summary due, of `main` for instance, which is called once."""
    summaries = Summaries.__new__(Summaries)
    summaries._failures, summaries._waits = {}, {}
    before = summaries.met
    assert not summaries.is_due(7)
    summaries.back(before)
    assert not summaries.is_due(7)
    summaries.back(summaries.met)
    assert summaries.is_due(7)
    assert summaries.is_due(8, is_called_again=True) and not summaries.is_due(9)
