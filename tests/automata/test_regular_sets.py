from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.automata.lightest_configurations import in_order, lightest, shortest
from mcveto.automata.pautomaton import PAutomaton, configuration_set
from mcveto.automata.regular_sets import complement, difference, intersect, is_empty, lifted, restrict, union
from mcveto.automata.semirings import BOOLEAN, MIN_PLUS

from .oracles import Config, stacks
from .strategies import CONTROLS, SYMBOLS, automata, configurations, symbols

HEIGHT = 4
ALL = [(control, stack) for control in CONTROLS for stack in stacks(SYMBOLS, HEIGHT)]
Set = PAutomaton[str, str, bool]


def members(automaton: Set) -> set[Config]:
    """Membership by trying all paths through the automaton's transitions."""

    def accepts(state: int, stack: tuple[str, ...]) -> bool:
        if not stack:
            return automaton.is_final(state)
        return any(
            symbol == stack[0] and accepts(target, stack[1:]) for symbol, target, _ in automaton.transitions_from(state)
        )

    entries = {control: automaton.find_entry(control) for control in CONTROLS}
    return {(p, stack) for p, stack in ALL if (e := entries[p]) is not None and accepts(e, stack)}


@given(automata(), automata())
@settings(max_examples=150, deadline=None)
def test_boolean_operations(left: Set, right: Set) -> None:
    one, other = members(left), members(right)
    for result, expected in (
        (left, one),
        (union(left, right), one | other),
        (intersect(left, right), one & other),
        (difference(left, right), one - other),
        (complement(left, CONTROLS, SYMBOLS), set(ALL) - one),
        (lifted(left, BOOLEAN), one),
    ):
        assert {config for config in ALL if config in result} == expected


@given(automata(), automata())
@settings(max_examples=100, deadline=None)
def test_results_have_no_transition_into_an_entry(left: Set, right: Set) -> None:
    for result in (
        union(left, right),
        intersect(left, right),
        difference(left, right),
        lifted(left, BOOLEAN),
    ):
        entries = {result.find_entry(control) for control in result.controls}
        targets = {to for state in range(result.state_count) for _, to, _ in result.transitions_from(state)}
        assert not entries & targets


@given(automata(2))
@settings(max_examples=150, deadline=None)
def test_emptiness_and_shortest(automaton: Set) -> None:
    # at most 4 states: a set that is not empty has an element of height 3 or less
    known = members(automaton)
    assert is_empty(automaton) == (not known)
    found = shortest(automaton, BOOLEAN)
    if not known:
        assert found is None
    else:
        assert found in known and len(found[1]) == min(len(stack) for _, stack in known)


@given(automata())
@settings(max_examples=100, deadline=None)
def test_in_order_lists_every_configuration_once(automaton: Set) -> None:
    expected = members(automaton)
    found = []
    for answer in in_order(automaton, BOOLEAN):
        if len(answer.configuration[1]) > HEIGHT:
            break
        found.append(answer.configuration)
    assert len(found) == len(set(found)) and set(found) == expected
    assert [len(stack) for _, stack in found] == sorted(len(stack) for _, stack in found)


@st.composite
def weighted(draw: st.DrawFn) -> PAutomaton[str, str, int | None]:
    automaton: PAutomaton[str, str, int | None] = PAutomaton(MIN_PLUS)
    states = [automaton.entry("p"), automaton.entry("q"), automaton.new_state(), automaton.new_state()]
    some = st.sampled_from(states)
    for source, symbol, target, weight in draw(st.lists(st.tuples(some, symbols, some, st.integers(1, 4)), max_size=9)):
        automaton.add(source, symbol, target, weight)
    for state in draw(st.lists(some, max_size=2)):
        automaton.add_final(state, draw(st.integers(0, 2)))
    return automaton


def weight_by_paths(automaton: PAutomaton[str, str, int | None], config: Config) -> int | None:
    def best(state: int, stack: tuple[str, ...]) -> int | None:
        if not stack:
            return automaton.final_weight(state)
        options = [
            weight + rest
            for symbol, target, weight in automaton.transitions_from(state)
            if symbol == stack[0] and weight is not None and (rest := best(target, stack[1:])) is not None
        ]
        return min(options, default=None)

    return best(automaton.entry(config[0]), config[1])


@given(weighted(), st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_lightest_first(automaton: PAutomaton[str, str, int | None], limit: int) -> None:
    weights = {c: w for c in ALL if (w := weight_by_paths(automaton, c)) is not None}
    for config in ALL:
        assert automaton.weight(config) == weights.get(config)
    found = lightest(automaton, MIN_PLUS, limit)
    costs = [answer.weight for answer in found if answer.weight is not None]
    assert len(costs) == len(found) and costs == sorted(costs)
    for answer in found:
        assert weight_by_paths(automaton, answer.configuration) == answer.weight
    # every symbol weighs at least 1: what is lighter than HEIGHT is in the enumerated part
    light = sorted(w for w in weights.values() if w < HEIGHT)[:limit]
    assert [cost for cost in costs if cost < HEIGHT] == light


@given(weighted(), automata())
@settings(max_examples=100, deadline=None)
def test_restriction_and_difference_keep_weights(automaton: PAutomaton[str, str, int | None], other: Set) -> None:
    inside = members(other)
    kept, left = restrict(automaton, other), difference(automaton, other)
    for config in ALL:
        weight = weight_by_paths(automaton, config)
        assert kept.weight(config) == (weight if config in inside else None)
        assert left.weight(config) == (None if config in inside else weight)


@given(st.lists(configurations(4), max_size=6))
@settings(deadline=None)
def test_a_finite_set(configs: list[Config]) -> None:
    automaton = configuration_set(configs)
    assert members(automaton) == set(configs)


def test_a_deep_recursion_takes_linear_space() -> None:
    configs = [("p", ("a", *("c",) * depth)) for depth in range(300)]
    assert configuration_set(configs).state_count <= 302
