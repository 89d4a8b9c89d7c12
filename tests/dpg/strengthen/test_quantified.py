"""Conditions on all cells: instances follow from them, and arrays of unknown length are proved with certificates."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcveto.certify import ANY_CELL, certificate_of
from mcveto.check.certificate import Certificate, Note, sealed
from mcveto.check.discharge import Effort, check
from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.driver import Limits
from mcveto.dpg.proof import Proof
from mcveto.dpg.strengthen.quantified import any_cell, instances, speaks_of_all
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec

EXAMPLES = Path(__file__).parents[3] / "examples" / "arrays"
MEMORY = t.memory("mem", 8)
CELL = any_cell(8)


def word(address: t.Term) -> t.Term:
    return t.load(MEMORY, address, 1, False)


@given(st.binary(min_size=256, max_size=256), st.integers(0, 255), st.integers(1, 255), st.integers(0, 255))
def test_instances_hold_where_the_condition_holds_for_all_cells(
    content: bytes, start: int, length: int, most: int
) -> None:
    """The oracle: the condition is evaluated for every address there is."""
    inside = t.ult(t.sub(CELL, t.const(start, 8)), t.const(length, 8))
    claim = t.implies(inside, t.ule(word(CELL), t.const(most, 8)))
    index = t.var("i", 8)
    read = t.eq(word(t.add(index, t.const(start, 8))), word(word(t.const(start, 8))))
    found = instances([claim, t.ule(index, t.const(9, 8))], [read])
    assert not any(map(speaks_of_all, found))

    def value(term: t.Term, cell: int, i: int) -> int:
        values = {CELL: cell, index: i}
        return Evaluator(values.__getitem__, lambda _, address: content[address]).value(term)

    for_all = all(value(claim, cell, 0) for cell in range(256))
    for i in (0, 1, 77, 255):
        holds = [value(term, 0, i) for term in found]
        assert all(holds) or not for_all
        read_from = {(i + start) & 255, start, content[start]}
        assert all(holds) == all(value(claim, cell, 0) for cell in read_from)


def test_conditions_on_single_states_have_no_instances() -> None:
    claim = t.ule(word(t.const(3, 8)), t.const(9, 8))
    assert not speaks_of_all(claim) and instances([claim], [claim]) == []


Proved = tuple[Program, Certificate]


@pytest.fixture(scope="module")
def proved() -> Proved:
    program = load_program(None, load_spec(str(EXAMPLES / "x86-32" / "all-affine-safe-O0.yaml")))
    verdict = AutoDriver(program, Limits(seconds=600)).run()
    assert verdict.kind == "proved" and isinstance(verdict.proof, Proof)
    return program, certificate_of(program, verdict.proof, "test")


def problem(proved: Proved, claim: Certificate) -> str:
    return check(sealed(claim), proved[0].image, Effort(timeout=60)).problem


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_checker_accepts_a_claim_about_all_cells(proved: Proved) -> None:
    claim = proved[1]
    assert [item.name for item in claim.history] == [ANY_CELL]
    assert problem(proved, claim) == ""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_checker_refuses_wrong_claims_about_all_cells(proved: Proved) -> None:
    _, claim = proved

    def replaced(old: str, new: str) -> Certificate:
        changed = tuple(
            msgspec.structs.replace(
                place, invariant=tuple(tuple(text.replace(old, new) for text in way) for way in place.invariant)
            )
            for place in claim.locations
        )
        assert changed != claim.locations
        return msgspec.structs.replace(claim, locations=changed)

    # The cells hold 3k + 7: a wrong constant (written as the negative one), a segment without end.
    assert problem(proved, replaced("#xfffffff9", "#xfffffff8"))
    assert problem(proved, replaced("(bvshl (concat", "(bvor #xffffffff (concat"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_variable_that_is_set_or_bound_is_not_anything(proved: Proved) -> None:
    """What is claimed for one value may not be used for others."""
    _, claim = proved
    first = next(place for place in claim.locations if place.steps)
    note = Note(to=first.steps[0], name=ANY_CELL, value="0x0")
    noted = tuple(
        msgspec.structs.replace(place, notes=(note,)) if place.id == first.id else place for place in claim.locations
    )
    assert problem(proved, msgspec.structs.replace(claim, locations=noted))
    begun = tuple(msgspec.structs.replace(item, begins="EAX") for item in claim.history)
    assert problem(proved, msgspec.structs.replace(claim, history=begun))


def test_locations_that_share_out_the_cells_say_nothing_of_all_of_them(proved: Proved) -> None:
    """Every location twice, for even and for odd cells, and nothing is claimed of what cells hold: a run is always in
    one of them, but what one says of even cells does not hold for others. Whoever believed it could prove anything."""
    _, claim = proved

    def both(name: str) -> tuple[str, ...]:
        return (name,) if name == "halt" else (f"{name}even", f"{name}odd")

    halves = [(half, f"(= ((_ extract 0 0) {ANY_CELL}) #b{bit})") for half, bit in (("even", 0), ("odd", 1))]
    locations = tuple(
        msgspec.structs.replace(
            place,
            id=place.id + half,
            invariant=tuple((*(text for text in way if ANY_CELL not in text), condition) for way in place.invariant),
            steps=tuple(step for name in place.steps for step in both(name)),
        )
        for place in claim.locations
        for half, condition in halves
    )
    start = tuple(name for old in claim.start for name in both(old))
    forged = msgspec.structs.replace(claim, locations=locations, start=start)
    assert "does not hold" in problem(proved, forged)


@pytest.mark.parametrize("name", ["x86-64/all-below-safe-O1", "ppc32-be/all-below-safe-O0"])
def test_arrays_by_byte_offsets_and_up_to_what_an_index_is_compared_with(name: str) -> None:
    """The first counts bytes and has its maximum in half a register; in the second, the length comes after other cells,
    and the entry decides what all cells are."""
    program = load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))
    assert AutoDriver(program, Limits(seconds=120)).run().kind == "proved"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/all-*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_examples_are_never_answered_wrongly(path: Path) -> None:
    program = load_program(None, load_spec(str(path)))
    verdict = AutoDriver(program, Limits(seconds=120)).run()
    assert verdict.kind in ("unknown", "violated" if "-bug-" in path.name else "proved")
