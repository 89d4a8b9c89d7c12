"""Property simulation: joins, ranges, and verdicts on programs with a known answer."""

from __future__ import annotations

import importlib
import itertools
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.path import KeyTable
from mcveto.engines.path import Path as Conditions
from mcveto.engines.simulation.low_bits import low_bits
from mcveto.engines.simulation.simulate import simulate
from mcveto.engines.simulation.size import is_large
from mcveto.engines.simulation.value_ranges import bounds_of, places_of
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.search import Question, search

ROOT = Path(__file__).parents[2]
AIR = ROOT / "examples" / "air" / "ppc32-be"
sys.path.insert(0, str(ROOT / "tools"))


def driver() -> Any:
    """The generator of large drivers, which is a tool and no part of the package."""
    return importlib.import_module("large_driver")


X, Y = t.var("x", 8), t.var("y", 8)


@st.composite
def expressions(draw: st.DrawFn) -> t.Term:
    term = draw(st.sampled_from([X, Y]))
    for _ in range(draw(st.integers(1, 4))):
        number = t.const(draw(st.integers(0, 255)), 8)
        other = draw(st.sampled_from([X, Y, number]))
        build = draw(
            st.sampled_from(
                [t.add, t.band, t.bor, t.bxor, t.lshr, t.urem, t.sub, t.mul, t.shl, shifted, chosen, upper, t.udiv]
            )
        )
        term = build(term, other)
    return term


def shifted(term: t.Term, other: t.Term) -> t.Term:
    """An index times four, and another bit pattern below it, as compilers mask and shift at once."""
    return t.concat(t.extract(term, 5, 0), t.extract(other, 1, 0))


def upper(term: t.Term, other: t.Term) -> t.Term:
    """Some bits from the middle, with or without a sign."""
    part = t.extract(term, 6, 3)
    return t.sext(part, 8) if other is Y else t.zext(part, 8)


def chosen(term: t.Term, other: t.Term) -> t.Term:
    return t.ite(t.ult(X, Y), term, t.add(other, t.const(4, 8)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    term=expressions(),
    limit=st.integers(0, 255),
    low=st.integers(0, 255),
    values=st.lists(st.integers(0, 65535)),
    both=st.integers(0, 511),
)
def test_bounds_enclose_every_value_the_path_allows(
    term: t.Term, limit: int, low: int, values: list[int], both: int
) -> None:
    path = Conditions(KeyTable(t.memory("mem", 32)))
    if both < 256:
        path.add(t.ule(t.zext(t.bor(X, Y), 16), t.const(both, 16)))
    path.add(t.ult(X, t.const(limit, 8)))
    path.add(t.bnot(t.ult(t.add(Y, t.const(7, 8)), t.const(low, 8))))
    path.add(t.ule(X, Y))
    if values:
        path.add(t.disj([t.eq(Y, t.const(value & 0xFF, 8)) for value in values]))
    least, greatest = bounds_of(term, path)
    places = places_of(term, 2, path, 512)
    count, bits = low_bits(term)
    draw = random.Random(1)
    for pair in [*values, *(draw.getrandbits(16) for _ in range(100))]:
        assigned = {X: pair & 0xFF, Y: pair >> 8}
        evaluator = Evaluator(lambda variable, assigned=assigned: assigned[variable], lambda *_: 0)  # type: ignore[misc]
        assert evaluator.value(term) & ((1 << count) - 1) == bits
        if all(evaluator.value(item) for item in path.terms):
            value = evaluator.value(term)
            assert least <= value <= greatest
            assert not places or any(low <= value and value + 2 <= high for low, high in places)


SMALL = [t.var(name, 4) for name in ("p", "q")]
small_sums = st.builds(lambda v, n: t.add(v, t.const(n, 4)), st.sampled_from(SMALL), st.integers(0, 15))
small_conditions = st.builds(
    lambda compare, one, other, holds: compare(one, other) if holds else t.bnot(compare(one, other)),
    st.sampled_from([t.ult, t.ule, t.eq, t.slt, t.sle]),
    small_sums,
    st.one_of(small_sums, st.integers(0, 15).map(lambda n: t.const(n, 4))),
    st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(conditions=st.lists(small_conditions, max_size=5), term=small_sums, other=small_sums)
def test_bounds_of_sums_that_wrap_around(conditions: list[t.Term], term: t.Term, other: t.Term) -> None:
    path = Conditions(KeyTable(t.memory("mem", 32)))
    for condition in conditions:
        if condition.op != "const":
            path.add(condition)
    asked = [term, t.add(term, other), t.zext(term, 8)]
    found = [bounds_of(item, path) for item in asked]
    for p, q in itertools.product(range(16), repeat=2):
        evaluator = Evaluator({SMALL[0]: p, SMALL[1]: q}.__getitem__, lambda *_: 0)
        if all(evaluator.value(item) for item in path.terms):
            for item, (least, greatest) in zip(asked, found, strict=True):
                assert least <= evaluator.value(item) <= greatest


def test_two_indices_that_are_compared_at_once() -> None:
    path = Conditions(KeyTable(t.memory("mem", 32)))
    path.add(t.ult(t.bor(X, Y), t.const(6, 8)))
    assert bounds_of(X, path) == bounds_of(Y, path) == (0, 5)


def test_words_of_an_array_end_where_the_array_does() -> None:
    """An index that was masked in eight bits and multiplied by four: no word reaches into what comes behind."""
    path = Conditions(KeyTable(t.memory("mem", 32)))
    index = t.add(t.mul(X, t.const(4, 8)), t.const(100, 8))
    address = t.add(t.zext(index, 32), t.const(0x8000, 32))
    assert low_bits(address) == (2, 0)
    assert places_of(address, 4, path, 64) == [(0x8000, 0x8100)]
    assert bounds_of(address, path) == (0x8000, 0x80FC)
    pair = t.concat(t.extract(X, 5, 0), t.const(0, 2))
    assert places_of(t.add(t.zext(pair, 32), t.const(0x8000, 32)), 4, path, 64) == [(0x8000, 0x8100)]
    listed = t.var("listed", 32)
    path.add(t.disj([t.eq(listed, t.const(0x9000 + 4 * number, 32)) for number in range(100)]))
    assert bounds_of(listed, path) == (0x9000, 0x9000 + 396)
    assert places_of(listed, 4, path, 64) == [] and places_of(listed, 4, path, 100) == [(0x9000, 0x9190)]


@pytest.mark.parametrize("name", ["memname", "lan-interrupt", "serial-open", "array-reset", "message-post"])
@pytest.mark.parametrize("version", ["fix", "bug"])
def test_lock_discipline(name: str, version: str) -> None:
    program = load_program(None, load_spec(str(AIR / f"{name}-{version}-O1.yaml")))
    assert not is_large(program)
    verdict = simulate(program, 60.0)
    assert verdict.kind == ("proved" if version == "fix" else "violated")


@pytest.mark.parametrize("most", [0, 800, 3000])
@pytest.mark.parametrize("name", ["lan-interrupt", "raid-poll"])
def test_a_record_that_becomes_too_long_is_given_up(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of it, and states that wait know where they came from."""
    spec = load_spec(str(AIR / f"{name}-fix-O1.yaml"))
    whole = simulate(load_program(None, spec), 60.0)
    monkeypatch.setattr("mcveto.engines.record.MAX_VALUES", most)
    cut = simulate(load_program(None, spec), 60.0)
    assert whole.proof is not None and cut.proof is None
    assert whole.kind == cut.kind == "proved"
    # Without a record, calls are summarised.
    assert 0 < cut.statistics["instructions_executed"] <= whole.statistics["instructions_executed"]


def test_large_programs_are_recognised(tmp_path: Path) -> None:
    spec = driver().build(tmp_path, 3, 6000, "tree", "fix")
    assert driver().instructions(spec) > 4000
    assert is_large(load_program(None, load_spec(str(spec))))


def test_a_mistake_behind_a_table_of_operations(tmp_path: Path) -> None:
    """The pointer to the function is read through a pointer without bounds, and called later; and the lock, which
    decides about the target, is kept apart before anything was forgotten."""
    spec = driver().build(tmp_path, 5, 1500, "table", "bug")
    verdict = simulate(load_program(None, load_spec(str(spec))), 600.0)
    assert verdict.kind == "violated" and verdict.statistics["refinements"] == 1


@pytest.mark.parametrize(
    ("kind", "seed", "version"),
    [("dispatch", 1, "fix"), ("dispatch", 1, "bug"), ("tree", 1, "bug"), ("chain", 7, "bug")],
)
def test_generated_drivers(kind: str, seed: int, version: str, tmp_path: Path) -> None:
    """Mistakes in one handler of many, which only few inputs show: among them one in the fourth turn of a loop."""
    spec = driver().build(tmp_path, seed, 2000, kind, version)
    verdict = simulate(load_program(None, load_spec(str(spec))), 600.0)
    assert verdict.kind == ("proved" if version == "fix" else "violated")
    if version == "bug":
        assert verdict.confirmed_by


# Devices behind pointers: tables of functions, nested locks, a ring, a bus, locks taken in one function and released
# in another.
SHAPES = ["table", "nested", "ring", "bus", "layers"]
QUICK_SHAPES = {("table", "fix"), ("layers", "bug")}


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        pytest.param(kind, version, marks=[] if (kind, version) in QUICK_SHAPES else pytest.mark.slow)
        for kind in SHAPES
        for version in ("fix", "bug")
    ],
)
def test_drivers_of_other_shapes(kind: str, version: str, tmp_path: Path) -> None:
    spec = driver().build(tmp_path, 1, 600 if (kind, version) in QUICK_SHAPES else 1500, kind, version)
    verdict = simulate(load_program(None, load_spec(str(spec))), 600.0)
    assert verdict.kind == ("proved" if version == "fix" else "violated")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chain", "dispatch", "tree"])
@pytest.mark.parametrize("version", ["fix", "bug"])
def test_generated_large_drivers(kind: str, version: str, tmp_path: Path) -> None:
    spec = driver().build(tmp_path, 2, 60_000, kind, version)
    program = load_program(None, load_spec(str(spec)))
    assert is_large(program)
    verdict = simulate(program, 1200.0)
    assert verdict.kind == ("proved" if version == "fix" else "violated")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["fix", "bug"])
def test_where_predicates_do_not_suffice_the_rest_of_the_time_is_for_a_simulation(version: str, tmp_path: Path) -> None:
    spec = load_spec(str(driver().build(tmp_path, 31, 3500, "dispatch", version)))
    verdict = search(lambda: load_program(None, spec), Question(engine="cegar", timeout=300.0)).verdict
    assert verdict.kind == ("proved" if version == "fix" else "violated")
