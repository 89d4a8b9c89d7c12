"""The paper's construction, our tabulation and the pushdown library agree with each other on random models."""

from __future__ import annotations

from collections import Counter
from itertools import product as words

from hypothesis import HealthCheck, assume, given, settings

from mcveto.automata.pautomaton import configuration_set
from mcveto.automata.pds import PDS, Rule
from mcveto.automata.post_star import post_star
from mcveto.counterexamples.b_graph import BGraph
from mcveto.counterexamples.enumeration import Enumeration, Limits
from mcveto.counterexamples.erase import Erase
from mcveto.counterexamples.model import NOTHING, Model
from mcveto.counterexamples.paper_enumeration import PaperEnumeration, TooHigh
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.reachable import Reachable
from mcveto.counterexamples.recursion import AnyRecursion, BoundedRecursion, MinimumRecursion
from mcveto.counterexamples.regular_expression import accepts
from mcveto.counterexamples.rule_graph import RuleGraph
from mcveto.counterexamples.shortest import shortest_witness
from mcveto.counterexamples.stacks import symbols_of
from mcveto.property.typestate import Typestate
from tests.counterexamples.brute_force import BruteForce
from tests.counterexamples.strategies import automata, models

_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
HEIGHT = 3


def frontier_pds(product: Product) -> PDS[int, int]:
    """The product for the pushdown library, without the rules of error states."""
    pds: PDS[int, int] = PDS()
    for control in product.universe():
        if not product.is_final[control]:
            for symbol in range(len(product.model.symbols)):
                for target, first, second in product.rules(product.head(control, symbol)):
                    pushed = tuple(item for item in (first, second) if item != NOTHING)
                    pds.add(Rule(control, symbol, target, pushed))
    return pds


@_SETTINGS
@given(models(), automata())
def test_reached_configurations(model: Model, automaton: Typestate) -> None:
    """post* of the library, our entries and frames, and the annotations of the B-graph denote the same stacks."""
    product = Product(model, automaton)
    expected = post_star(frontier_pds(product), configuration_set([(c, product.start_stack) for c in product.starts]))
    reachable = Reachable(product)
    graph = BGraph(RuleGraph(product))
    annotations = {node: graph.annotation(node) for node in graph.nodes if node >= 0}
    symbols = range(len(model.symbols))
    for control in product.universe():
        for height in range(HEIGHT + 1):
            for stack in words(symbols, repeat=height):
                full = (*stack, product.bottom)
                head = product.head(control, full[0])
                known = (control, full) in expected
                assert _reads(reachable, head, full[1:]) == known
                annotation = annotations.get(head)
                assert (annotation is not None and accepts(annotation, full[:0:-1])) == known


def _reads(reachable: Reachable, head: int, rest: tuple[int, ...]) -> bool:
    entries = {entry for entry, here in enumerate(reachable.distance) if head in here}
    for symbol in rest:
        entries = {frame.below for entry in entries for frame in reachable.callers[entry] if frame.symbol == symbol}
    return any(entry in reachable.bases for entry in entries)


@_SETTINGS
@given(models(), automata(variables=True))
def test_erase(model: Model, automaton: Typestate) -> None:
    product = Product(model, automaton)
    erase = Erase(product)
    found = {
        (product.controls[control], symbol, product.controls[end])
        for control in product.universe()
        for symbol in range(len(model.symbols))
        for end in erase.of(product.head(control, symbol))
    }
    expected = BruteForce(model, automaton).erase()
    assert {
        ((model.controls[a.control], a.configuration), model.symbols[b], (model.controls[c.control], c.configuration))
        for a, b, c in found
    } == expected


@_SETTINGS
@given(models(max_rules=8), automata())
def test_both_enumerations(model: Model, automaton: Typestate) -> None:
    product = Product(model, automaton)
    enumeration = Enumeration(
        Reachable(product), MinimumRecursion(Erase(product)), Limits(expansions=20_000, stack_height=9)
    )
    found = Counter(witness.key for witness in enumeration)
    assume(enumeration.is_exhaustive)
    try:
        paper = PaperEnumeration(product, MinimumRecursion(Erase(product))).witnesses()
    except TooHigh:
        assume(False)
    assert Counter(witness.key for witness in paper) == found


@_SETTINGS
@given(models(), automata())
def test_an_error_is_reached_iff_some_trace_is_found(model: Model, automaton: Typestate) -> None:
    """Without condition 2 the enumeration begins with the shortest trace to an error, if there is one at all."""
    product = Product(model, automaton)
    reachable = Reachable(product)
    first = next(iter(Enumeration(reachable, AnyRecursion())), None)
    assert (first is not None) == bool(reachable.errors)
    if first is not None:
        nearest = min(reachable.depth[entry] + reachable.distance[entry][head] for entry, head in reachable.errors)
        assert len(first) == nearest


@_SETTINGS
@given(models(), automata())
def test_bounded_recursion_counts(model: Model, automaton: Typestate) -> None:
    product = Product(model, automaton)
    limits = Limits(expansions=3_000)
    for bound in (1, 2):
        for witness in Enumeration(Reachable(product), BoundedRecursion(bound), limits):
            for _, stack in witness.key:
                assert max(Counter(stack[1:]).values(), default=0) <= max(
                    bound, max(Counter(witness.key[0][1][1:]).values(), default=0)
                )


@_SETTINGS
@given(models(), automata())
def test_the_shortest_trace_without_a_search(model: Model, automaton: Typestate) -> None:
    """It is a run, as long as the shortest that the search gives, and says whether calls are pending twice."""
    reachable = Reachable(Product(model, automaton), nearest_only=True)
    assume(reachable.errors)
    product = reachable.product
    witness, recurs = shortest_witness(reachable)
    expected = next(iter(Enumeration(reachable, AnyRecursion(), Limits(expansions=200_000))))
    assert len(witness) == len(expected)
    stacks = [(state.top, *symbols_of(state.below)) for state in witness.states]
    assert stacks[0] == product.start_stack and witness.states[0].control in product.starts
    for number, state in enumerate(witness.states[:-1]):
        assert not product.is_final[state.control]
        following = (witness.states[number + 1].control, stacks[number + 1])
        ways = product.rules(product.head(state.control, state.top))
        after = [(t, (*(s for s in pushed if s != NOTHING), *stacks[number][1:])) for t, *pushed in ways]
        assert following in after
    assert product.is_final[witness.states[-1].control]
    assert recurs == any(len(set(stack[1:])) < len(stack) - 1 for stack in stacks)
