"""Groups of conjuncts, bounds of terms, and states that are covered by earlier ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path as File

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.path import KeyTable, Path
from mcveto.engines.queries import Model, No, Queries
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec

EXAMPLES = File(__file__).parents[2] / "examples"
MEMORY = t.memory("mem", 32)
VARIABLES = [t.var(f"x{i}", 8) for i in range(6)]


@pytest.fixture(scope="module")
def program() -> Program:
    return load_program(None, load_spec(str(EXAMPLES / "fig10/x86-32/ex6.yaml")))


def byte_at(address: int) -> t.Term:
    return t.load(MEMORY, t.const(address, 32), 1, False)


def naive(conjuncts: list[t.Term], wanted: t.Term, table: KeyTable) -> set[t.Term]:
    """Conjuncts connected with `wanted` by repeated closure."""

    def meet(a: frozenset[object], b: frozenset[object]) -> bool:
        anywhere_a, anywhere_b = MEMORY in a, MEMORY in b
        bytes_a = anywhere_a or any(isinstance(key, int) for key in a)
        bytes_b = anywhere_b or any(isinstance(key, int) for key in b)
        return bool(a & b) or (anywhere_a and bytes_b) or (anywhere_b and bytes_a)

    chosen: set[t.Term] = set()
    reached = [table.of(wanted)]
    while True:
        new = {c for c in conjuncts if c not in chosen and any(meet(table.of(c), keys) for keys in reached)}
        if not new:
            return chosen
        chosen |= new
        reached += [table.of(c) for c in new]


BOUNDS = st.tuples(st.sampled_from([t.ult, t.slt]), st.booleans(), st.integers(0, 255), st.integers(0, 3))


@settings(max_examples=200, deadline=None)
@given(st.lists(BOUNDS, max_size=12), BOUNDS)
def test_only_the_closest_bounds_are_asked_about(bounds: list[tuple], other: tuple) -> None:  # type: ignore[type-arg]
    x = VARIABLES[0]

    def said(compare: Callable[[t.Term, t.Term], t.Term], is_upper: bool, number: int, offset: int) -> t.Term:
        subject, limit = t.add(x, t.const(offset // 2, 8)), t.const(number, 8)
        return compare(subject, limit) if is_upper else compare(limit, subject)

    def values(terms: Iterable[t.Term]) -> set[int]:
        return {n for n in range(256) if all(substitute(term, {x: t.const(n, 8)}) is t.TRUE for term in terms)}

    conjuncts = [term for bound in bounds if (term := said(*bound)).op != "const"]
    path = Path(KeyTable(MEMORY))
    for conjunct in conjuncts:
        path.add(conjunct)
    asked = path.about([x])
    assert values(asked) == values(path.terms) == values(conjuncts)
    assert len([term for term in asked if term.op in ("ult", "slt")]) <= 8  # two terms, two comparisons, two sides
    assert not path.holds(said(*other)) or values(conjuncts) <= values([said(*other)])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 3)), max_size=8), st.integers(0, 7))
def test_about_is_the_connected_part(pairs: list[tuple[int, int, int]], wanted: int) -> None:
    def operand(number: int) -> t.Term:
        if number == 7:
            return t.load(MEMORY, t.zext(VARIABLES[0], 32), 1, False)
        return VARIABLES[number] if number < 6 else byte_at(64)

    table = KeyTable(MEMORY)
    conjuncts = [t.ult(t.add(operand(a), t.const(k, 8)), operand(b)) for a, b, k in pairs]
    conjuncts = [c for c in dict.fromkeys(conjuncts) if c.op != "const"]
    # What compares an operand with itself is simplified to a lower bound: each is closer than those added before it.
    conjuncts.sort(key=lambda c: c.args[0].data if c.args[0].op == "const" else -1)
    closest = {c.args[1]: c for c in conjuncts if c.args[0].op == "const"}
    path = Path(table, conjuncts)
    conjuncts = [c for c in conjuncts if c.args[0].op != "const" or closest[c.args[1]] is c]
    question = t.eq(operand(wanted), t.const(5, 8))
    assert set(path.about([question])) == naive(conjuncts, question, table)
    twin = path.copy()
    twin.add(t.eq(VARIABLES[1], t.const(9, 8)))
    assert set(path.about([question])) == naive(conjuncts, question, table), "a copy is independent"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 200), st.integers(1, 60), st.sampled_from([1, 2, 4]), st.integers(0, 300))
def test_bounds_are_exact(low: int, width: int, factor: int, widest: int) -> None:
    program = load_program(None, load_spec(str(EXAMPLES / "fig10/x86-32/ex6.yaml")))
    queries = Queries(program, time.monotonic() + 60, 20.0)
    x = t.var("in!0", 32)
    path = Path(queries.table, [t.ule(t.const(low, 32), x), t.ult(x, t.const(low + width, 32))])
    model = queries.model(path, (), None)
    assert isinstance(model, Model)
    term = t.add(t.mul(x, t.const(factor, 32)), t.const(0x1000, 32))
    least, greatest = 0x1000 + factor * low, 0x1000 + factor * (low + width - 1)
    found = queries.bounds(path, term, model, widest)
    if found is not None:
        assert found == (least, greatest)
    assert (found is None) == (greatest - least > widest)


def test_a_model_reads_the_image(program: Program) -> None:
    """A symbolic read of a byte of the image must not be given another value."""
    queries = Queries(program, time.monotonic() + 60, 20.0)
    x = t.var("in!0", 32)
    start = program.entry
    inside = [t.ule(t.const(start, 32), x), t.ult(x, t.const(start + 8, 32))]
    code = {program.space.initial_byte(start + i) for i in range(8)}
    absent = next(value for value in range(256) if value not in code)
    read = t.load(MEMORY, x, 1, False)
    path = Path(queries.table, inside)
    assert queries.model(path, [t.eq(read, t.const(absent, 8))], None) is No.UNSAT
    present = program.space.initial_byte(start + 5)
    assert present is not None
    model = queries.model(path, [t.eq(read, t.const(present, 8))], None)
    assert isinstance(model, Model)
    assert program.space.initial_byte(model.value(x)) == present
