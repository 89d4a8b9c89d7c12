"""The enumeration gives exactly what blind search gives, in order of length, each trace once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mcveto.counterexamples.enumeration import Enumeration, Limits
from mcveto.counterexamples.erase import Erase
from mcveto.counterexamples.model import Model
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.reachable import Reachable
from mcveto.counterexamples.recursion import MinimumRecursion
from mcveto.property.typestate import Typestate
from tests.counterexamples.brute_force import BruteForce, TooMany
from tests.counterexamples.strategies import automata, models

_SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def check(model: Model, automaton: Typestate) -> int:
    """Compares the two; the number of traces."""
    try:
        expected = BruteForce(model, automaton).witnesses()
    except TooMany:
        return -1
    product = Product(model, automaton)
    enumeration = Enumeration(
        Reachable(product), MinimumRecursion(Erase(product)), Limits(expansions=1_000_000, stack_height=40)
    )
    found = [witness.key for witness in enumeration]
    assert enumeration.is_exhaustive, enumeration.stopped
    assert Counter(found) == Counter(expected)
    assert [len(key) for key in found] == sorted(len(key) for key in found)
    return len(found)


@_SETTINGS
@given(models(), automata())
def test_pushdown_models(model: Model, automaton: Typestate) -> None:
    assume(check(model, automaton) >= 0)


@_SETTINGS
@given(models(), automata(variables=True))
def test_variables(model: Model, automaton: Typestate) -> None:
    assume(check(model, automaton) >= 0)


@_SETTINGS
@given(models(finite=True, max_rules=12), automata(variables=True))
def test_finite_models(model: Model, automaton: Typestate) -> None:
    assume(check(model, automaton) >= 0)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=6000, deadline=None, suppress_health_check=list(HealthCheck))
@given(models(max_rules=12), st.booleans().flatmap(lambda variables: automata(variables=variables)))
def test_thousands(model: Model, automaton: Typestate) -> None:
    assume(check(model, automaton) >= 0)
