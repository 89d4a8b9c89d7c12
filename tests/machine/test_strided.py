"""Strided intervals against enumeration of their members, and along concrete runs of compiled programs."""

from __future__ import annotations

from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.evaluate import evaluate
from mcveto.machine import strided as s
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.operators import FUNCTIONS
from mcveto.machine.strided import StridedInterval
from mcveto.machine.strided_conditions import Contradiction, Environment
from mcveto.machine.strided_domain import StridedDomain, StridedValue
from mcveto.machine.strided_operators import apply
from mcveto.machine.tracked_cells import MemoryCell

from .along_runs import example, run

ARITHMETIC = [
    "INT_ADD",
    "INT_SUB",
    "INT_MULT",
    "INT_AND",
    "INT_OR",
    "INT_XOR",
    "INT_DIV",
    "INT_REM",
    "INT_SDIV",
    "INT_SREM",
]
SHIFTS = ["INT_LEFT", "INT_RIGHT", "INT_SRIGHT"]
COMPARISONS = sorted(s.COMPARISONS)


def all_intervals(bits: int) -> list[StridedInterval]:
    half = 1 << (bits - 1)
    found = []
    for low in range(-half, half):
        found.append(s.singleton(low, bits))
        for high in range(low + 1, half):
            found += [StridedInterval(bits, low, high, d) for d in range(1, high - low + 1) if (high - low) % d == 0]
    return found


def members(x: StridedInterval) -> list[int]:
    mask = (1 << x.bits) - 1
    return [value & mask for value in range(x.low, x.high + 1, x.stride or 1)]


def least(values: set[int], bits: int) -> StridedInterval:
    """The least strided interval with these members."""
    numbers = sorted(s.signed(value, bits) for value in values)
    stride = gcd(*(b - numbers[0] for b in numbers))
    return StridedInterval(bits, numbers[0], numbers[-1], stride)


def intervals(bits: int) -> st.SearchStrategy[StridedInterval]:
    half = 1 << (bits - 1)

    def build(low: int, stride: int, count: int) -> StridedInterval:
        high = low + stride * count
        while high >= half:
            count //= 2
            high = low + stride * count
        return s.wrapped(bits, low, high, stride)

    stride = st.one_of(st.integers(1, 9), st.sampled_from([1 << k for k in range(bits - 1)]))
    return st.builds(build, st.integers(-half, half - 1), stride, st.integers(0, 1 << bits))


def concrete(opcode: str, x: int, y: int, bits: int) -> int:
    mask = (1 << bits) - 1
    return FUNCTIONS[opcode]((x, y), mask, mask, 1 << (bits - 1), bits)


def abstract(opcode: str, x: StridedInterval, y: StridedInterval) -> StridedInterval:
    return s.shift(opcode, x, y) if opcode in SHIFTS else apply(opcode, (x, y), x.bits, x.bits)


def check_all_pairs(opcode: str, bits: int) -> None:
    """Soundness for every pair of intervals, and exactness of the result's form."""
    every = all_intervals(bits)
    size = 1 << bits
    masks = {x: sum(1 << value for value in members(x)) for x in every}
    rows = [
        [sum({1 << concrete(opcode, value, other, bits) for other in members(y)}) for y in every]
        for value in range(size)
    ]
    for x in every:
        mine = [rows[value] for value in members(x)]
        for number, y in enumerate(every):
            possible = 0
            for row in mine:
                possible |= row[number]
            result = abstract(opcode, x, y)
            assert possible & ~masks[result] == 0, (opcode, str(x), str(y), str(result))


@pytest.mark.parametrize("opcode", [*ARITHMETIC, *SHIFTS, *COMPARISONS])
def test_every_pair_of_three_bit_intervals(opcode: str) -> None:
    check_all_pairs(opcode, 3)


@pytest.mark.slow
@pytest.mark.parametrize("opcode", [*ARITHMETIC, *SHIFTS, *COMPARISONS])
def test_every_pair_of_four_bit_intervals(opcode: str) -> None:
    check_all_pairs(opcode, 4)


@given(intervals(8), intervals(8), st.sampled_from([*ARITHMETIC, *SHIFTS, *COMPARISONS]), st.data())
def test_bytes(x: StridedInterval, y: StridedInterval, opcode: str, data: st.DataObject) -> None:
    result = abstract(opcode, x, y)
    a, b = data.draw(st.sampled_from(members(x))), data.draw(st.sampled_from(members(y)))
    assert concrete(opcode, a, b, 8) in result


@given(intervals(32), intervals(32), st.sampled_from([*ARITHMETIC, *SHIFTS, *COMPARISONS]), st.data())
def test_words(x: StridedInterval, y: StridedInterval, opcode: str, data: st.DataObject) -> None:
    result = abstract(opcode, x, y)
    a, b = (v.low + (v.stride * data.draw(st.integers(0, v.count - 1))) & 0xFFFF_FFFF for v in (x, y))
    assert concrete(opcode, a, b, 32) in result


def test_unary_operators_on_every_four_bit_interval() -> None:
    for x in all_intervals(4):
        for opcode in ("INT_2COMP", "INT_NEGATE", "BOOL_NEGATE", "POPCOUNT", "LZCOUNT", "INT_ZEXT", "INT_SEXT"):
            for bits in (4, 7) if opcode.endswith("EXT") else (4,):
                result = apply(opcode, (x,), 4, bits)
                for value in members(x):
                    assert FUNCTIONS[opcode]((value,), (1 << bits) - 1, 15, 8, 4) in result, (opcode, str(x))
        if x.stride:
            assert apply("INT_SEXT", (x,), 4, 8) == least({v - 16 & 255 if v > 7 else v for v in members(x)}, 8)


def test_pieces_of_every_four_bit_interval() -> None:
    every = all_intervals(4)
    for x in every:
        for low in range(4):
            for bits in range(1, 5 - low):
                result = s.extract(x, low, bits)
                assert all((value >> low) & ((1 << bits) - 1) in result for value in members(x))
    for x in all_intervals(3):
        for y in all_intervals(2):
            result = s.concatenate(x, y)
            assert all(a << 2 | b in result for a in members(x) for b in members(y))


def test_lattice_on_every_pair_of_three_bit_intervals() -> None:
    every = all_intervals(3)
    for x in every:
        for y in every:
            union, common = {*members(x), *members(y)}, {*members(x)} & {*members(y)}
            assert s.join(x, y) == least(union, 3)
            assert s.meet(x, y) == (least(common, 3) if common else None), (str(x), str(y))
            widened = s.widen(x, y)
            assert union <= {*members(widened)}
            assert (widened == x) == ({*members(y)} <= {*members(x)})
            assert s.widen(widened, y) == widened


def test_widening_stops_at_thresholds() -> None:
    x = StridedInterval(32, 209, 210, 1)
    assert s.widen(x, s.singleton(208, 32), [-7, 1, 500]) == StridedInterval(32, 1, 210, 1)
    assert s.widen(x, s.singleton(211, 32), [-7, 1, 500]) == StridedInterval(32, 209, 500, 1)
    assert s.widen(x, s.singleton(501, 32), [-7, 1, 500]) == StridedInterval(32, 209, (1 << 31) - 1, 1)
    assert s.widen(StridedInterval(32, 4, 8, 4), s.singleton(12, 32), [21]) == StridedInterval(32, 4, 20, 4)
    assert s.widen(StridedInterval(8, 0, 4, 4), s.singleton(8, 8), [1000]) == StridedInterval(8, 0, 124, 4)


@given(st.lists(intervals(8), min_size=2, max_size=40), st.lists(st.integers(-128, 127), max_size=3))
def test_widening_contains_both_and_settles(chain: list[StridedInterval], thresholds: list[int]) -> None:
    current, changes = chain[0], 0
    for other in chain[1:]:
        widened = s.widen(current, other, sorted(thresholds))
        assert {*members(current), *members(other)} <= {*members(widened)}
        changes += widened != current
        current = widened
    # Each bound passes every threshold and the end at most once; a stride is halved at most seven times.
    assert changes <= 2 * (len(thresholds) + 1) + 8


def test_clipping_every_four_bit_interval() -> None:
    for x in all_intervals(4):
        for low in range(-8, 8):
            for high in range(low, 8):
                kept = {value for value in members(x) if low <= s.signed(value, 4) <= high}
                assert s.clip(x, low, high) == (least(kept, 4) if kept else None)
                kept = {value for value in members(x) if low + 8 <= value <= high + 8}
                assert s.clip_unsigned(x, low + 8, high + 8) == (least(kept, 4) if kept else None)


def test_what_is_known_precisely() -> None:
    four = StridedInterval(8, 0, 12, 4)
    assert s.add(four, s.singleton(1, 8)) == StridedInterval(8, 1, 13, 4)
    assert s.multiply(four, s.singleton(-3, 8)) == StridedInterval(8, -36, 0, 12)
    assert apply("INT_AND", (s.top(8), s.singleton(0xFC, 8)), 8, 8) == StridedInterval(8, -128, 124, 4)
    assert apply("INT_AND", (s.top(8), s.singleton(7, 8)), 8, 8) == StridedInterval(8, 0, 7, 1)
    assert s.add(s.top(8), four) == s.top(8)
    assert s.multiply(s.top(8), s.singleton(4, 8)) == StridedInterval(8, -128, 124, 4)
    assert s.add(StridedInterval(8, 100, 124, 8), s.singleton(60, 8)) == StridedInterval(8, -96, -72, 8)


X, Y = t.var("x", 4), t.var("y", 4)
ATOMS = [X, Y, t.add(X, t.const(3, 4)), t.neg(Y), t.sub(Y, t.const(6, 4)), t.const(5, 4), t.const(12, 4)]
SMALL = t.zext(t.extract(X, 2, 0), 4)


def comparisons() -> st.SearchStrategy[t.Term]:
    side = st.sampled_from([*ATOMS, SMALL, t.add(X, Y)])
    basic = st.builds(lambda op, a, b: op(a, b), st.sampled_from([t.eq, t.ult, t.ule, t.slt, t.sle, t.ne]), side, side)
    return st.recursive(
        basic,
        lambda inner: st.one_of(
            st.builds(lambda a, b: t.conj([a, b]), inner, inner),
            st.builds(lambda a, b: t.disj([a, b]), inner, inner),
            st.builds(t.bnot, inner),
        ),
        max_leaves=4,
    )


@given(comparisons(), intervals(4), intervals(4), st.booleans())
def test_conditions_narrow_soundly(condition: t.Term, x: StridedInterval, y: StridedInterval, holds: bool) -> None:
    states = [(a, b) for a in members(x) for b in members(y)]
    satisfying = [(a, b) for a, b in states if bool(evaluate(condition, {X: a, Y: b})) == holds]
    environment = Environment()
    environment.intervals = {X: x, Y: y}
    known = environment.truth(condition)
    if known is not None:
        assert len(satisfying) == (len(states) if known == holds else 0)
    try:
        environment.assume(condition, holds)
    except Contradiction:
        assert not satisfying
        return
    assert all(a in environment.intervals[X] and b in environment.intervals[Y] for a, b in satisfying)
    narrowed = environment.intervals
    assert s.join(narrowed[X], x) == x and s.join(narrowed[Y], y) == y


def test_bounds_move_with_comparisons() -> None:
    x = t.var("x", 32)
    environment = Environment()
    environment.intervals = {x: s.top(32)}
    environment.assume(t.conj([t.sle(t.const(1, 32), x), t.slt(x, t.const(10, 32))]), True)
    assert environment.intervals[x] == StridedInterval(32, 1, 9, 1)
    environment.assume(t.ult(t.add(x, t.const(5, 32)), t.const(9, 32)), True)
    assert environment.intervals[x] == StridedInterval(32, 1, 3, 1)
    environment.assume(t.eq(x, t.const(3, 32)), False)
    assert environment.intervals[x] == StridedInterval(32, 1, 2, 1)


@pytest.mark.parametrize(
    "name",
    ["x86-32/overview", "x86-32/slam1", "x86-32/simp_ok", "x86-32/cars", "x86-32/smc1-REACH-0", "ppc32-be/overview"],
)
def test_intervals_contain_the_values_of_concrete_runs(name: str) -> None:
    program = example(name)
    row, layout = program.decoder.row, program.decoder.layout
    registers = [cell for cell in layout.cells if cell.name in row.general]
    interpreter: Interpreter[StridedValue] = Interpreter(program.decoder)
    informative = 0
    for seed in (1, 2):
        accessed = sorted({MemoryCell(*where) for moment in run(program, seed, 200) for where in moment.state.accesses})
        cells = [c for i, c in enumerate(accessed) if i == 0 or accessed[i - 1].address + accessed[i - 1].size <= c[0]]
        domain: StridedDomain | None = None
        pending = None
        for step, (instruction, state) in enumerate(run(program, seed, 200)):
            if domain is not None and pending is not None:
                taken, offset = list(state.decisions), domain.decisions
                domain._choose = lambda number, t=taken, o=offset: t[number - o]  # type: ignore[misc]
                interpreter.execute(pending, domain)
                for cell in layout.cells:
                    if cell.number in state.registers:
                        interval = domain.register(cell)
                        assert state.registers[cell.number] in interval, (pending, cell)
                        informative += not interval.is_top
                for place in cells:
                    assert state.memory.load(*place) in domain.cell(place), pending
                    informative += not domain.cell(place).is_top
            if step % 12 == 0:
                around = [
                    (cell.number, _around(state.registers.get(cell.number, 0), cell.bits, step + cell.number))
                    for cell in registers
                ]
                places = {c: _around(state.memory.load(*c), c.bits, c.address // 4) for c in cells}
                domain = StridedDomain(layout, program.space, dict(around), places, lambda number: False)
            pending = instruction
    assert informative > 1000


def _around(value: int, bits: int, variant: int) -> StridedInterval:
    """An interval with the value in it: alone, with neighbours, or with everything."""
    if variant % 3 == 0:
        return s.singleton(value, bits)
    number, half = s.signed(value, bits), 1 << (bits - 1)
    if variant % 3 == 1 and -half + 8 <= number < half - 8:
        return s.wrapped(bits, number - 8, number + 8, 4)
    return s.top(bits)
