"""Expected verdicts checked by enumeration in Unicorn: all inputs or all states where those are few.

Exhausting the inputs of a program whose inputs matter only through the enumerated values is a proof for that
binary; comments say why these values are enough. Elsewhere the search is bounded and only a test.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from unicorn import x86_const

FIG10 = Path(__file__).resolve().parent.parent.parent / "examples" / "fig10" / "x86-32"
TRICKS = FIG10.parent.parent / "machine" / "tricks"
MINUS_ONE, LEAST, MOST = 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF

# Every vector of inputs that can make a difference.
ALL_INPUTS: dict[str, Iterable[Sequence[int]]] = {
    "fib-REACH-0": [[n] for n in range(16)],  # the program masks all but four bits
    "overview": [[0], [1]],  # only bit 0 is looked at
    "smc1-REACH-0": [[]],
    "ex6": [[]],
    "ex5": [  # values outside the two ranges leave at once; their borders stand for them
        [x, y] for x in [*range(11), MINUS_ONE, LEAST, MOST] for y in [*range(11), MINUS_ONE, LEAST, MOST]
    ],
    "ex8": [[n, v] for n in range(16) for v in (0, 77, MINUS_ONE)],  # the value is only ever stored
    "clobber-CASE-9": [[n] for n in (0, 1, 2, MINUS_ONE, LEAST, MOST)],  # all but 0 and 1 leave at once
    "instraliasing-REACH-0": [[0], [1], [MOST], [LEAST], [MINUS_ONE]],  # only the sign is looked at
    "fig7a": [[a] for a in (MINUS_ONE, LEAST, 0, 1, 2, 3, 4, 5, MOST)],  # compared with 0..3 only
}


@pytest.mark.parametrize("name", ALL_INPUTS)
def test_proved_for_every_input(name: str, boot: Callable[..., Any]) -> None:
    for inputs in ALL_INPUTS[name]:
        machine = boot(FIG10 / f"{name}.yaml")
        assert machine.spec["expected"] == "proved"
        assert machine.run(inputs, pad=False) == "halt", inputs
        assert not machine.wrong_return, inputs


@pytest.mark.parametrize("length", range(25))
def test_bounded_copy_for_every_length(length: int, boot: Callable[..., Any]) -> None:
    """Only the place of the first zero matters: the bytes are never compared with anything else."""
    machine = boot(FIG10 / "simp_ok.yaml")
    assert machine.run([], [[0x41] * length]) == "halt"
    unbounded = boot(FIG10 / "simp_bad.yaml")
    assert unbounded.run([], [[0x41] * length]) == ("reach" if length >= 16 else "halt")


@pytest.mark.parametrize("count", [6, 7, 8, 9])
def test_count_is_reached_by_one_byte_only(count: int, boot: Callable[..., Any]) -> None:
    path = FIG10 / f"count-COUNT-{count}.yaml"
    values = [*range(16), count + 16, count + 64, 127, 128, 255]
    assert [value for value in values if boot(path).run([value]) == "reach"] == [count]


def test_jump_table_never_selects_its_last_entry(boot: Callable[..., Any]) -> None:
    assert {boot(TRICKS / "jump-table.yaml").run([value]) for value in range(256)} == {"halt"}


def test_five_hundred_and_twelve_targets(boot: Callable[..., Any]) -> None:
    ends = [boot(TRICKS / "table-512.yaml").run([value]) for value in range(512)]
    assert [value for value, end in enumerate(ends) if end == "reach"] == [317]


REGISTERS = [
    *(x86_const.UC_X86_REG_EBX, x86_const.UC_X86_REG_ESI, x86_const.UC_X86_REG_EDI),
    *(x86_const.UC_X86_REG_EBP, x86_const.UC_X86_REG_ESP),
]


def explore(machine: Any, first: Sequence[int], values: Sequence[int], limit: int) -> tuple[set[str], bool, int]:
    """Breadth-first search over the states at calls of the input function, answered with each of `values`.

    A state is what survives a call: callee-saved registers, writable memory, the live part of the stack and
    the shadow stack. Returns how paths ended, whether the search was exhaustive, and the number of states.
    """
    ends: set[str] = set()
    engine = machine.engine

    def snapshot() -> tuple[Any, ...]:
        stack = engine.reg_read(x86_const.UC_X86_REG_ESP)
        content = [bytes(engine.mem_read(address, size)) for address, size in machine.areas]
        content.append(bytes(engine.mem_read(stack, 0x7FF00000 - stack)))
        return tuple(engine.reg_read(r) for r in REGISTERS), tuple(content), tuple(machine.shadow), machine.pc

    def restore(state: tuple[Any, ...]) -> None:
        registers, content, shadow, machine.pc = state
        for register, value in zip(REGISTERS, registers, strict=True):
            engine.reg_write(register, value)
        for (address, _), area in zip(machine.areas, content, strict=False):
            engine.mem_write(address, area)
            engine.ctl_remove_cache(address, address + len(area))
        engine.mem_write(registers[-1], content[-1])
        machine.shadow = list(shadow)

    how = machine.run(first, pad=False)
    if how != "input":
        return {how}, True, 0
    start = snapshot()
    known, queue = {start}, deque([start])
    while queue and len(known) < limit:
        state = queue.popleft()
        for value in values:
            restore(state)
            how = machine.resume(value)
            assert not machine.wrong_return
            if how != "input":
                ends.add(how)
                continue
            reached = snapshot()
            if reached not in known:
                known.add(reached)
                queue.append(reached)
    return ends, not queue, len(known)


@pytest.mark.parametrize("name", ["barber", "share-CASE-0", "smc1-unbounded"])
def test_proved_for_every_state(name: str, boot: Callable[..., Any]) -> None:
    """These programs look only at bit 0 of an input or whether it is zero, and have few states."""
    ends, exhausted, states = explore(boot(FIG10 / f"{name}.yaml"), [], [0, 1], 20_000)
    assert exhausted, f"gave up after {states} states"
    assert ends == {"halt"}


# The first inputs of programs that otherwise look at bit 0 or zero only; too many states to exhaust.
FIRST_INPUTS: dict[str, list[list[int]]] = {
    "blast2": [[0], [MINUS_ONE - 1]],
    "slam1": [[0], [MINUS_ONE - 1]],
    "berkeley-fixed": [[1], [2], [5], [MOST - 1], [MOST]],
}


@pytest.mark.parametrize(("name", "first"), [(n, f) for n, fs in FIRST_INPUTS.items() for f in fs])
def test_proved_as_far_as_explored(name: str, first: list[int], boot: Callable[..., Any]) -> None:
    ends, _, states = explore(boot(FIG10 / f"{name}.yaml"), first, [0, 1], 400)
    assert states > 5
    assert ends == {"halt"}


@pytest.mark.parametrize(("name", "first"), [("berkeley", MOST), ("efm", MINUS_ONE)])
def test_search_finds_the_wrap_around(name: str, first: int, boot: Callable[..., Any]) -> None:
    """The same search on the programs that are only safe over the mathematical integers."""
    assert "reach" in explore(boot(FIG10 / f"{name}.yaml"), [first], [0, 1], 400)[0]
    assert "reach" not in explore(boot(FIG10 / f"{name}.yaml"), [5], [0, 1], 400)[0]


def admissible() -> Iterable[tuple[int, int, int]]:
    """Speeds (v1, v2, v3) that pass the guard of the signed cars: small ones, and ones that wrap around."""
    for v2 in range(-5, 6):
        for v3 in [*range(11), 0x40000000, 0x40000001, 0x50000000, 0x7FFFFFFF]:
            v1 = (2 * v2 - v3) & MINUS_ONE
            signed = v1 - (1 << 32) if v1 >> 31 else v1
            gap = (v1 - v3) & MINUS_ONE
            if signed <= 5 and not gap >> 31:
                yield v1, v2 & MINUS_ONE, v3


def test_signed_cars_stop_after_eleven_steps(boot: Callable[..., Any]) -> None:
    """After the speeds the run depends on the number of turns only, and stops changing after eleven."""
    speeds = list(admissible())
    assert len(speeds) > 20
    for speed in speeds:
        for turns in (0, 1, 5, 10, 11, 12, 13):
            machine = boot(FIG10 / "cars-signed.yaml")
            assert machine.run([*speed, *[1] * turns, 0]) == "halt"
