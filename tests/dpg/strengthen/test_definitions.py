"""Definitions: what a step says of places behind it, against evaluating the step; and where nothing else proves."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.driver import Limits
from mcveto.dpg.strengthen.candidates import open_places, relations
from mcveto.dpg.strengthen.definitions import MAX_TERMS, _holders, _pieces, _renamed, definitions
from mcveto.dpg.strengthen.places import relevant_places
from mcveto.dpg.strengthen.stages import Stages
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.infix import pretty
from mcveto.logic.terms import Term
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from tests.dpg.strengthen.test_explicit_values import explored

EXAMPLES = Path(__file__).parents[3] / "examples" / "arrays"
A, B, C = (t.var(name, 8) for name in "abc")
WIDE = t.var("w", 16)
MEMORY = t.memory("mem", 8)

_LEAVES = st.sampled_from([A, B, C, t.extract(WIDE, 7, 0), t.const(3, 8), t.const(252, 8)])
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(t.add, inner, inner),
        st.builds(t.band, inner, inner),
        st.builds(lambda address: t.load(MEMORY, address, 1, False), inner),
    ),
    max_leaves=6,
)


@given(
    st.tuples(_VALUES, _VALUES, _VALUES, st.builds(lambda low: t.zext(low, 16), _VALUES)),
    st.tuples(*(st.integers(0, 255),) * 3, st.integers(0, 65535)),
    st.binary(min_size=256, max_size=256),
)
def test_definitions_hold_behind_the_step(after: tuple[Term, ...], numbers: tuple[int, ...], content: bytes) -> None:
    """The oracle: the step is taken with numbers, and the equation evaluated behind it. It writes no memory."""
    places = (A, B, C, WIDE)
    before = dict(zip(places, numbers, strict=True))
    evaluate = Evaluator(before.__getitem__, lambda _, address: content[address]).value
    behind = {place: evaluate(value) for place, value in zip(places, after, strict=True)}
    computed = dict(zip(places, after, strict=True))
    for place, value in computed.items():
        said = _renamed(value, _holders(computed, place))
        if said is not None:
            found = Evaluator(behind.__getitem__, lambda _, address: content[address]).value(said)
            assert found == behind[place]


def test_a_count_that_is_split_and_a_cell_that_is_held() -> None:
    computed = {A: A, B: t.band(A, t.const(3, 8))}
    assert _renamed(computed[B], _holders(computed, B)) is t.band(A, t.const(3, 8))
    moved = {A: t.add(A, t.const(4, 8)), B: t.load(MEMORY, t.add(A, t.const(104, 8)), 1, False)}
    assert _renamed(moved[B], _holders(moved, B)) is t.load(MEMORY, t.add(A, t.const(100, 8)), 1, False)


def test_an_instruction_may_write_a_part_of_a_register() -> None:
    content = t.load(MEMORY, t.add(A, t.const(104, 8)), 1, False)
    value = t.concat(t.extract(WIDE, 15, 8), content)
    assert list(_pieces(WIDE, value)) == [
        (t.extract(WIDE, 15, 8), t.extract(WIDE, 15, 8)),
        (t.extract(WIDE, 7, 0), content),
    ]
    assert list(_pieces(A, B)) == [(A, B)]


def test_what_is_lost_or_long_is_no_definition() -> None:
    computed = {A: t.const(0, 8), B: t.band(A, t.const(3, 8))}
    assert _renamed(computed[B], _holders(computed, B)) is None
    value: Term = A
    for _ in range(MAX_TERMS):
        value = t.band(t.add(value, C), t.bxor(value, C))
    assert _renamed(value, _holders({A: A, C: C, B: value}, B)) is None


def test_definitions_hold_in_all_samples() -> None:
    for name in ("loops/x86-32-O0/growing-safe", "loops/x86-32-O0/nested-safe"):
        _, system, _ = explored(name, seeds=4)
        relevant = relevant_places(system.places, system.all_steps())
        for cut in system.cuts:
            for equation in definitions(system, cut, open_places(system, cut, relevant[cut])):
                assert system.samples.holds(cut, equation)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_an_unrolled_copy_leaves_over() -> None:
    """Compiled by -O1: four words a turn, n & ~3 words in all; the other n & 3 by a loop that counts them down."""
    program = load_program(None, load_spec(str(EXAMPLES / "x86-32" / "all-copied-safe-O1.yaml")))
    assert AutoDriver(program, Limits(seconds=240)).run().kind == "proved"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "equations"),
    [
        ("x86-32", {"EDX = 4*zext32(ESI[8:2])", "EAX = zext32(ESI[1:0])"}),  # n & 0x1fc and n & 3
        ("x86-64", {"RAX = 8*zext64(R14[8:3])", "ZMM0[127:0] = mem128[RDX + 0x8049250]"}),
    ],
)
def test_equations_that_samples_do_not_show(name: str, equations: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is split off a count before the loops, and the four words that one turn reads and the next one stores."""
    said: set[str] = set()
    shown: set[str] = set()

    class Seen(Exception):
        pass

    def stop(self: Stages) -> None:
        system = self.system
        relevant = relevant_places(system.places, system.all_steps())
        for cut in system.cuts:
            places = open_places(system, cut, relevant[cut])
            said.update(map(pretty, definitions(system, cut, places)))
            shown.update(map(pretty, relations(system, cut, places)))
        raise Seen

    monkeypatch.setattr(Stages, "relations", stop)
    program = load_program(None, load_spec(str(EXAMPLES / name / "all-copied-safe-O1.yaml")))
    with pytest.raises(Seen):
        AutoDriver(program, Limits(seconds=120)).run()
    assert equations <= said
    assert equations.isdisjoint(shown)
