"""The affine domain against enumeration, and along concrete runs of compiled programs."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.evaluate import evaluate
from mcveto.machine.affine import (
    AffineDomain,
    AffineSpace,
    AffineValue,
    Equation,
    Form,
    Transfer,
    Unknown,
    to_term,
)
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import decoder_for
from mcveto.machine.operators import FUNCTIONS
from mcveto.machine.registers import Cell
from mcveto.machine.tracked_cells import MemoryCell

from .along_runs import example, run
from .programs import CODE, DATA, address_space

BITS = 2
POINTS = list(product(range(1 << BITS), repeat=2))
FORMS = [Form(BITS, c, tuple((i, a) for i, a in enumerate((p, q)) if a)) for c, p, q in product(range(4), repeat=3)]
form_strategy = st.sampled_from(FORMS)


def value(form: Form, point: tuple[int, ...]) -> int:
    return (form.constant + sum(a * point[i] for i, a in form.terms)) & ((1 << form.bits) - 1)


def members(space: AffineSpace) -> set[tuple[int, ...]]:
    return {point for point in POINTS if point in space}


def entailed(points: set[tuple[int, ...]]) -> set[Form]:
    return {form for form in FORMS if all(value(form, point) == 0 for point in points)}


@st.composite
def spaces(draw: st.DrawFn) -> AffineSpace:
    space = AffineSpace.product(BITS, draw(st.tuples(*[st.one_of(st.none(), st.integers(0, 3))] * 2)))
    for form in draw(st.lists(form_strategy, max_size=2)):
        space = space.constrained(form)
    return space


def test_product_and_nothing() -> None:
    assert members(AffineSpace.product(BITS, [None, 3])) == {(x, 3) for x in range(4)}
    assert AffineSpace.nothing(BITS, 2).is_empty and not members(AffineSpace.nothing(BITS, 2))


@given(spaces(), form_strategy)
def test_constraining_is_intersection(space: AffineSpace, form: Form) -> None:
    result = space.constrained(form)
    assert members(result) == {point for point in members(space) if value(form, point) == 0}
    assert result.is_empty == (not members(result))


@given(spaces(), spaces())
def test_join_entails_exactly_what_both_entail(first: AffineSpace, second: AffineSpace) -> None:
    points = members(first) | members(second)
    joined = first.joined(second)
    assert members(joined) >= points
    assert {form for form in FORMS if joined.entails(form)} == entailed(points)
    assert (first <= second) == (members(first) <= members(second))


@given(spaces())
def test_equations_describe_the_space(space: AffineSpace) -> None:
    if space.is_empty:
        return
    equations = space.equations()
    assert members(space) == {point for point in POINTS if all(value(form, point) == 0 for form in equations)}
    variables = [t.var("x", BITS), t.var("y", BITS)]
    terms = [to_term(form, variables) for form in equations]
    for point in POINTS:
        assignment: dict[t.Term, object] = dict(zip(variables, point, strict=True))
        assert all(evaluate(term, assignment) for term in terms) == (point in space)  # type: ignore[arg-type]


@given(spaces(), st.sampled_from([[], [0], [1], [1, 0]]))
def test_projection_keeps_what_is_said_about_the_rest(space: AffineSpace, kept: list[int]) -> None:
    image = {tuple(point[i] for i in kept) for point in members(space)}
    assert {p for p in product(range(4), repeat=len(kept)) if p in space.projected(kept)} == image


@given(spaces())
def test_constants_are_the_variables_with_one_value(space: AffineSpace) -> None:
    points = members(space)
    values = [{point[i] for point in points} for i in range(2)]
    assert space.constants() == {i: min(found) for i, found in enumerate(values) if len(found) == 1}


@given(
    spaces(),
    st.lists(form_strategy, max_size=1),
    st.tuples(st.one_of(st.none(), form_strategy), st.one_of(st.none(), form_strategy)),
)
def test_transfer_is_the_affine_hull_of_the_image(
    space: AffineSpace, guards: list[Form], after: tuple[Form | None, Form | None]
) -> None:
    image = {
        tuple(free[i] if form is None else value(form, point) for i, form in enumerate(after))
        for point in members(space)
        if all(value(guard, point) == 0 for guard in guards)
        for free in POINTS
    }
    result = space.transformed(Transfer(tuple(guards), after))
    assert members(result) >= image
    assert {form for form in FORMS if result.entails(form)} == entailed(image)


SPACE = address_space("x86-32", b"\x90")
UNARY = ["INT_2COMP", "INT_NEGATE"]
BINARY = ["INT_ADD", "INT_SUB", "INT_MULT", "INT_AND", "INT_OR", "INT_XOR"]
COMPARE = ["INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_SLESS", "INT_SBORROW"]


def never(number: int) -> bool:
    raise AssertionError("no decision is expected")


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from([*UNARY, *BINARY, *COMPARE]), st.integers(0, 99), st.integers(0, 99)), max_size=6
    ),
    st.integers(0, 15),
)
def test_operators_agree_with_numbers(program: list[tuple[str, int, int]], constant: int) -> None:
    registers = [Cell(0, "x", 0, 1), Cell(1, "y", 1, 1)]
    domain = AffineDomain(SPACE, 8, registers, [], never)
    width = 8
    values: list[AffineValue] = [domain.read_register(cell) for cell in registers]
    values.append(domain.constant(constant, width))
    points = [(x, y) for x in (0, 1, 7, 128, 200, 255) for y in (0, 2, 127, 129, 254)]
    concrete = [[x, y, constant] for x, y in points]
    masks = (255, 255, 128, 8)
    for opcode, left, right in program:
        picked = [left % len(values), right % len(values)][: 1 if opcode in UNARY else 2]
        values.append(domain.apply(opcode, tuple(values[i] for i in picked), width, width))
        for row in concrete:
            row.append(FUNCTIONS[opcode](tuple(row[i] for i in picked), *masks))
    for number, abstract in enumerate(values):
        for point, row in zip(points, concrete, strict=True):
            if isinstance(abstract, Form):
                assert value(abstract, point) == row[number]
            elif isinstance(abstract, Equation):
                assert ((value(abstract.form, point) == 0) != abstract.negated) == bool(row[number])


def test_truncation_and_shift() -> None:
    domain = AffineDomain(SPACE, 8, [Cell(0, "x", 0, 1)], [], never)
    x = domain.read_register(Cell(0, "x", 0, 1))
    assert domain.extract(x, 0, 4, 8) == Form(4, 0, ((0, 1),))
    assert domain.extract(x, 4, 4, 8) == Unknown(4)
    assert domain.shift("INT_LEFT", x, domain.constant(3, 8), 8, 8) == Form(8, 0, ((0, 8),))
    assert domain.shift("INT_LEFT", x, domain.constant(8, 8), 8, 8) == Form(8, 0)
    assert domain.shift("INT_RIGHT", x, domain.constant(1, 8), 8, 8) == Unknown(8)


def test_equation_assumed_of_fewer_bits_constrains_the_low_bits() -> None:
    domain = AffineDomain(SPACE, 8, [Cell(0, "x", 0, 1)], [], lambda number: True)
    low = domain.extract(domain.read_register(Cell(0, "x", 0, 1)), 0, 4, 8)
    assert domain.decide(domain.apply("INT_EQUAL", (low, domain.constant(3, 4)), 4, 8))
    space = AffineSpace.product(8, [None]).transformed(domain.transfer())
    assert [x for x in range(256) if (x,) in space] == [x for x in range(256) if x % 16 == 3]


def test_store_through_an_unknown_address_forgets_writable_cells() -> None:
    inside, code = MemoryCell(DATA, 4), MemoryCell(CODE, 4)
    decoder = decoder_for("x86-32")
    eax = decoder.layout.by_name["EAX"]
    for address_of, forgotten in (("EAX", {inside}), (DATA + 2, {inside}), (DATA + 4, set())):
        domain = AffineDomain(SPACE, 32, [eax], [inside, code], never)
        address = domain.read_register(eax) if address_of == "EAX" else domain.constant(int(address_of), 32)
        domain.store(address, domain.constant(1, 16), 2)
        cells = {cell for cell in (inside, code) if isinstance(domain.memory.values[cell], Unknown)}
        assert cells == forgotten


def test_may_touch_narrows_what_is_forgotten() -> None:
    one, other = MemoryCell(DATA, 4), MemoryCell(DATA + 4, 4)
    eax = decoder_for("x86-32").layout.by_name["EAX"]
    domain = AffineDomain(SPACE, 32, [eax], [one, other], never, lambda address, size: [MemoryCell(DATA + 5, 1)])
    domain.store(domain.read_register(eax), domain.constant(1, 8), 1)
    assert isinstance(domain.memory.values[one], Form) and isinstance(domain.memory.values[other], Unknown)


@pytest.mark.parametrize(
    "name", ["x86-32/overview", "x86-32/slam1", "x86-32/cars", "x86-32/smc1-REACH-0", "ppc32-be/overview"]
)
def test_forms_have_the_values_of_concrete_runs(name: str) -> None:
    program = example(name)
    row, layout = program.decoder.row, program.decoder.layout
    bits = row.address_bits
    registers = [cell for cell in layout.cells if cell.bits == bits and cell.name in row.general]
    assert len(registers) >= 8
    interpreter: Interpreter[AffineValue] = Interpreter(program.decoder)
    compared = 0
    for seed in (1, 2):
        accessed = {MemoryCell(*where) for moment in run(program, seed, 300) for where in moment.state.accesses}
        words = sorted(cell for cell in accessed if cell.bits == bits)
        cells = [cell for i, cell in enumerate(words) if i == 0 or words[i - 1].address + words[i - 1].size <= cell[0]]
        domain: AffineDomain | None = None
        pending = None
        before: list[int] = []
        for step, (instruction, state) in enumerate(run(program, seed, 300)):
            if domain is not None and pending is not None:
                taken = list(state.decisions)
                offset = domain.decisions
                domain._choose = lambda number, t=taken, o=offset: t[number - o]  # type: ignore[misc]
                interpreter.execute(pending, domain)
                for number, form in domain.registers.items():
                    if isinstance(form, Form):
                        assert value(form, tuple(before)) == state.registers.get(number, 0), pending
                        compared += bool(form.terms)
                for cell, form in domain.memory.values.items():
                    if isinstance(form, Form):
                        assert value(form, tuple(before)) == state.memory.load(*cell), pending
                        compared += bool(form.terms)
                assert all(value(guard, tuple(before)) == 0 for guard in domain.guards)
            if step % 12 == 0:
                domain = AffineDomain(program.space, bits, registers, cells, never)
                before = [state.registers.get(cell.number, 0) for cell in registers]
                before += [state.memory.load(*cell) for cell in cells]
            pending = instruction
    assert compared > 300
