"""Constants of regions against plain dictionaries of bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.cegar.bounds import bounds
from mcveto.engines.cegar.constants import Constants, ImageBytes
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import READ, WRITE, RegionSpec

START, SIZE = 0x1000, 0x1800
FIXED = 0x8000
SPACE = AddressSpace(
    [
        RegionSpec("data", START, SIZE, READ | WRITE, bytes(range(200)), ((0x100, 0x200),)),
        RegionSpec("text", FIXED, 0x100, READ, b"\x07" * 0x100),
    ],
    32,
    False,
)
Model = dict[int, int]

addresses = st.integers(START - 70, START + SIZE + 70)
writes = st.tuples(st.just("write"), addresses, st.one_of(st.none(), st.integers(0, 255)))
forgets = st.tuples(st.just("forget"), addresses, st.integers(0, 0x1400))
changes = st.lists(st.one_of(writes, forgets), max_size=8)


def at_entry() -> tuple[Constants, Model]:
    known = {address: SPACE.initial_byte(address) for address in range(START - 200, START + SIZE + 200)}
    return Constants(ImageBytes(SPACE), {}, {}, ()), {at: byte for at, byte in known.items() if byte is not None}


def changed(state: Constants, model: Model, wanted: list[tuple[str, int, int | None]]) -> tuple[Constants, Model]:
    change, model = state.change(), dict(model)
    for kind, address, value in wanted:
        if kind == "write":
            change.write(address, value)
            model.pop(address, None)
            if value is not None:
                model[address] = value
        else:
            assert value is not None
            change.forget(address, address + value)
            model = {
                at: byte for at, byte in model.items() if not (address <= at <= address + value and SPACE.writable(at))
            }
    return change.done(), model


def agrees(state: Constants, model: Model) -> bool:
    return all(state.byte(address) == model.get(address) for address in range(START - 100, START + SIZE + 100))


@settings(max_examples=12, deadline=None)
@given(changes, changes, changes)
def test_changes_and_joins(
    first: list[tuple[str, int, int | None]],
    second: list[tuple[str, int, int | None]],
    third: list[tuple[str, int, int | None]],
) -> None:
    common = changed(*at_entry(), first)
    assert agrees(*common)
    one, other = changed(*common, second), changed(*common, third)
    assert agrees(*one) and agrees(*other) and agrees(*common)
    joined = one[0].joined(other[0])
    assert agrees(joined, {at: byte for at, byte in one[1].items() if other[1].get(at) == byte})
    assert joined.joined(other[0]) is joined


def test_only_writable_bytes_are_forgotten() -> None:
    state, _ = at_entry()
    change = state.change()
    change.forget(0, 0xFFFFFFFF)
    after = change.done()
    assert after.byte(START) is None
    assert after.byte(FIXED) == 7
    assert state.byte(START) == 0


def test_a_dropped_page_does_not_come_back() -> None:
    state, _ = at_entry()
    change = state.change()
    change.write(START + 0x140, 9)
    before = change.done()
    again = before.change()
    again.drop(START + 0x100, START + 0x200)
    again.write(START + 0x141, 1)
    after = again.done()
    assert after.byte(START + 0x140) is None and after.byte(START + 0x141) == 1


def terms(x: Term, y: Term) -> list[Term]:
    word = t.zext(x, 32)
    mask = t.band(y, t.const(0x3C, 32))
    return [
        word,
        t.add(t.mul(word, t.const(4, 32)), t.const(0x8000, 32)),
        t.sub(t.const(100, 32), word),
        t.sub(t.const(0x1000, 32), t.mul(word, t.const(8, 32))),
        mask,
        t.add(mask, t.const(0xFFFFFFF0, 32)),
        t.ite(t.ult(y, t.const(9, 32)), word, t.const(77, 32)),
        t.lshr(mask, t.zext(x, 32)),
        t.urem(y, t.const(13, 32)),
        t.add(t.urem(y, t.const(13, 32)), word),
        t.extract(t.add(word, y), 7, 0),
        t.band(t.bor(word, y), t.const(0xFF, 32)),
    ]


@given(st.integers(0, 255), st.integers(0, 0xFFFFFFFF))
def test_values_are_within_bounds(first: int, second: int) -> None:
    x, y = t.var("x", 8), t.var("y", 32)
    values = {x: first, y: second}
    evaluator = Evaluator(lambda variable: values[variable], lambda memory, address: 0)
    for term in terms(x, y):
        low, high = bounds(term)
        assert low <= evaluator.value(term) <= high


def test_bounds_of_tables_are_tight() -> None:
    x = t.var("x", 8)
    index = t.mul(t.zext(x, 32), t.const(4, 32))
    assert bounds(t.add(index, t.const(0x8000, 32))) == (0x8000, 0x8000 + 4 * 255)
