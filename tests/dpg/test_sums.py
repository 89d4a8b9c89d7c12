"""Tables of results that something is added to, and which registers claims are worth making of."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg.strengthen.candidates import pair
from mcveto.dpg.summaries.live import live_registers
from mcveto.dpg.summaries.paths import Paths
from mcveto.dpg.summaries.state import Names
from mcveto.dpg.summaries.sums import summands, total
from mcveto.logic import terms as t
from mcveto.program.program import Program
from tests.dpg.blob_program import blob_program

from .test_summaries import certificate, example, problem, recorded_tables

SLOW = pytest.mark.slow


def tribonacci(n: int) -> int:
    numbers = [0, 0, 1]
    while len(numbers) <= n:
        numbers.append(sum(numbers[-3:]))
    return numbers[n]


@pytest.mark.parametrize(
    "name",
    [
        "x86-32/tribonacci-safe-O1",
        pytest.param("x86-64/tribonacci-safe-O1", marks=SLOW),
        pytest.param("ppc32-be/tribonacci-safe-O1", marks=SLOW),
    ],
)
def test_a_sum_so_far(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the function are its values, and the proof by them is one."""
    made = recorded_tables(monkeypatch)
    program = example(name)
    assert problem(program, certificate(program)) == ""
    (function, *_) = sorted(made[-1]._signatures)
    rows = {key[0]: value for (pc, key), value in made[-1].rows.items() if pc == function}
    assert set(range(31)) <= rows.keys()
    assert all(list(results.values()) == [tribonacci(n)] for n, results in rows.items())


@pytest.mark.parametrize(
    "name",
    [
        "x86-32/counted-safe-O1",
        pytest.param("x86-32/counted-safe-O0", marks=SLOW),
        pytest.param("ppc32-be/counted-safe-O1", marks=SLOW),
    ],
)
def test_a_counter_that_outlives_activations(name: str) -> None:
    program = example(name)
    assert problem(program, certificate(program)) == ""


# call input; mov edx,eax; mov ecx,eax; call f; ret; input: ret; then f(n in ECX, sum in EDX), which returns in EAX
HEAD = "e80a000000 89c2 89c1 e802000000 c3 c3"
BODIES = {
    # eax = edx; if (ecx) f(ecx - 1, edx + ecx): the sum is only added to
    "sum": ("89d0 85c9 7501 c3 01ca 49 CALL c3 f4", ["EDX"]),
    # the same, but the result is the sum twice
    "twice": ("8d0412 85c9 7501 c3 01ca 49 CALL c3 f4", []),
    # the same, but what is returned at the end depends on the sum's lowest bit
    "looked at": ("89d0 f6c201 7401 c3 85c9 7501 c3 01ca 49 CALL c3 f4", []),
    # the same, but the sum doubles on the way down
    "doubled": ("89d0 85c9 7501 c3 01d2 49 CALL c3 f4", []),
    # the same, but the sum is what is counted down
    "argument": ("89d0 85d2 7501 c3 4a CALL c3 f4", []),
}


def code(tmp_path: Path, text: str) -> Program:
    """The program whose function is `text`, where CALL is a call of itself."""
    before, after = (bytes.fromhex(part) for part in text.split("CALL"))
    content = bytes.fromhex(HEAD) + before + b"\xe8" + (-len(before) - 5).to_bytes(4, "little", signed=True) + after
    return blob_program(tmp_path, content, 0x100F, 0x1000 + len(content) - 1)


@pytest.mark.parametrize("name", BODIES)
def test_only_what_is_added_is_a_summand(name: str, tmp_path: Path) -> None:
    text, expected = BODIES[name]
    program = code(tmp_path, text)
    names = Names(program)
    paths = Paths(program, names, lambda guard, at_entry: True).all()
    (procedure,) = [pc for pc in paths if pc is not None]
    registers = {str(cell.data): cell for cell in names.cells}
    places = [registers["ECX"], registers["EDX"]]
    result = names.renamed(registers["EAX"], "after ")
    stack = {names.stack_pointer: names.address(names.stack[1] - 256)}
    found = summands(paths, {procedure: [result]}, {procedure: places}, {procedure: places}, stack)
    assert [str(place.data) for place in found[procedure][result]] == expected


def test_totals() -> None:
    one, other = t.var("one", 32), t.var("other", 32)
    assert total([], 32) is t.const(0, 32)
    assert total([one, other], 32) is t.add(other, one)


def test_scratch_registers_are_not_live_behind_a_call() -> None:
    """The compiler leaves something in ECX and EDX; nobody reads it."""
    program = example("x86-32/tribonacci-safe-O1")
    names = Names(program)
    live = live_registers(names, Paths(program, names, lambda guard, at_entry: True).all())
    for procedure in (pc for pc in live.behind if pc is not None):
        behind = {str(register.data) for register in live.behind[procedure]}
        assert "EAX" in behind and "EBX" in behind and behind.isdisjoint({"ECX", "EDX", "CF", "ZF"})
    assert {"EAX", "EBX", "ESP"} <= {str(register.data) for register in live.registers(names)}


def test_differences_that_have_a_step_in_common() -> None:
    """x counts down by two from y: they stay both even or both odd."""
    x, y = t.var("x", 32), t.var("y", 32)
    left, right = [9, 7, 5, 8, 6, 4, 3], [9, 9, 9, 8, 8, 8, 9]
    even = t.eq(t.band(t.sub(x, y), t.const(1, 32)), t.const(0, 32))
    assert even in set(pair(x, y, left, right))
    assert even not in set(pair(x, y, [*left, 2], [*right, 9]))
