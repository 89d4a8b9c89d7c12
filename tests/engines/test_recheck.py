"""Questions that are the same but for the names of their variables, and no others, are asked again once."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines import recheck as rechecking
from mcveto.engines.recheck import _form, recheck
from mcveto.logic import terms as t
from mcveto.logic.solver import make_solver
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

A, B, C, X, Y, Z = (t.var(name, 8) for name in "abcxyz")
values = st.recursive(
    st.sampled_from([A, B, C, X, Y, Z, t.const(3, 8)]),
    lambda inner: st.builds(lambda make, one, other: make(one, other), st.sampled_from([t.add, t.band]), inner, inner),
    max_leaves=3,
)
conditions = st.builds(lambda make, one, other: make(one, other), st.sampled_from([t.eq, t.ult]), values, values)
cores = st.lists(conditions, min_size=1, max_size=2).map(frozenset)


def variables(core: frozenset[Term]) -> list[Term]:
    return [part for part in t.postorder(list(core)) if part.op == "var"]


def test_forms() -> None:
    chain = _form([t.ult(X, Y), t.ult(Y, Z)], set())
    assert chain == _form([t.ult(A, B), t.ult(B, C)], set())
    for other in (
        [t.ult(A, B), t.ult(C, B)],
        [t.ult(A, B), t.ult(B, A)],
        [t.ult(A, B)],
        [t.ule(A, B), t.ult(B, C)],
        [t.ult(A, B), t.ult(B, t.const(7, 8))],
    ):
        assert _form(other, set()) != chain
    assert _form([t.ult(X, Y)], {X}) != _form([t.ult(A, Y)], {X}), "more is said of x elsewhere"
    assert _form([t.ult(X, Y)], {X}) == _form([t.ult(X, B)], {X})


@settings(max_examples=400, deadline=None)
@given(cores, cores)
def test_what_has_the_same_form_differs_in_names_alone(one: frozenset[Term], other: frozenset[Term]) -> None:
    mine, others = variables(one), variables(other)
    renamings = (
        Substitution(dict(zip(mine, order, strict=True)))
        for order in itertools.permutations(others)
        if len(mine) == len(others)
    )
    are_alike = any({*map(names.apply, one)} == other for names in renamings)
    assert are_alike or _form(one, set()) != _form(other, set())


def test_each_form_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    make = make_solver

    def counted(name: str) -> Any:
        solver = make(name)
        check = solver.check

        def checked(*rest: Any) -> Any:
            asked.append(name)
            return check(*rest)

        monkeypatch.setattr(solver, "check", checked)
        return solver

    monkeypatch.setattr(rechecking, "make_solver", counted)
    impossible = [frozenset({t.ult(one, other), t.ult(other, one)}) for one, other in ((A, B), (X, Y), (B, Z))]
    queries: Any = SimpleNamespace(facts=[], refuted=impossible)
    assert recheck(queries, time.monotonic() + 20) == "" and len(asked) == 1
    queries = SimpleNamespace(facts=[], refuted=[*impossible, frozenset({t.ult(A, B), t.ult(C, B)})])
    assert "self-check failed" in recheck(queries, time.monotonic() + 20)


def test_bounds_that_exclude_each_other_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether products overflow is a hard question that nobody need ask."""
    wide = [t.var(f"w{number}", 64) for number in range(4)]
    value = t.bxor(t.mul(wide[0], wide[1]), t.mul(t.mul(wide[2], wide[3]), wide[0]))
    core = frozenset({t.ult(t.const(912, 64), value), t.ult(value, t.const(5, 64))})
    monkeypatch.setattr(rechecking, "_SOON", 0.0)
    monkeypatch.setattr(rechecking, "_SECONDS", 0.0)
    assert recheck(SimpleNamespace(facts=[], refuted=[core]), time.monotonic() + 5) == ""  # type: ignore[arg-type]
    possible = frozenset({t.ult(t.const(3, 64), value), t.ult(value, t.const(5, 64))})
    assert recheck(SimpleNamespace(facts=[], refuted=[possible]), time.monotonic() + 5)  # type: ignore[arg-type]
