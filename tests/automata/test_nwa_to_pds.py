from __future__ import annotations

from hypothesis import given, settings

from mcveto.automata.nested_words import Kind
from mcveto.automata.nwa import NWA, Call, Internal, Return
from mcveto.automata.nwa_emptiness import shortest_run
from mcveto.automata.nwa_to_pds import (
    P,
    Popped,
    executed_configurations,
    start_configurations,
    steps,
    to_pds,
    transition_of,
    with_any_stack,
)
from mcveto.automata.pautomaton import configuration_set
from mcveto.automata.pds import Rule
from mcveto.automata.post_star import weighted_post_star
from mcveto.automata.pre_star import weighted_pre_star
from mcveto.automata.semirings import MIN_PLUS
from mcveto.automata.witness import path_from_sources

from .oracles import steps_of
from .strategies import nested_word_automata


def test_the_rules_of_section_3_3() -> None:
    nwa: NWA[str] = NWA()
    nwa.add_internal("q", "i", "q'")
    nwa.add_call("qc", "call", "qe")
    nwa.add_return("qx", "qc", "ret", "qr")
    assert to_pds(nwa).rules == (
        Rule(P, "q", P, ("q'",), "i"),
        Rule(P, "qc", P, ("qe", "qc"), "call"),
        Rule(P, "qx", Popped("qx"), (), None),
        Rule(Popped("qx"), "qc", P, ("qr",), "ret"),
    )
    assert [transition_of(rule) for rule in to_pds(nwa).rules] == [
        Internal("q", "i", "q'"),
        Call("qc", "call", "qe"),
        None,
        Return("qx", "qc", "ret", "qr"),
    ]


@given(nested_word_automata(4, 5))
@settings(max_examples=150, deadline=None)
def test_configurations_of_the_pds_are_those_of_the_automaton(nwa: NWA[int]) -> None:
    pds = to_pds(nwa)
    result = weighted_post_star(pds, configuration_set(start_configurations(nwa)), MIN_PLUS, steps)
    known: dict[tuple[int, tuple[int, ...]], int] = {(state, ()): 0 for state in nwa.initial}
    layer = list(known)
    for distance in range(1, 6):
        following = []
        for state, calls in layer:
            for _, _, target, after in steps_of(nwa, state, calls):
                if (target, after) not in known:
                    known[target, after] = distance
                    following.append((target, after))
        layer = following
    for (state, calls), distance in known.items():
        assert result.configurations.weight((P, (state, *calls))) == distance
        rules = path_from_sources(result, MIN_PLUS, (P, (state, *calls)))
        assert rules is not None and sum(map(steps, rules)) == distance
    # and no others, as near as these
    for state in nwa.states:
        for below in [(), *((other,) for other in nwa.states)]:
            weight = result.configurations.weight((P, (state, *below)))
            assert known.get((state, below)) == (weight if weight is not None and weight <= 5 else None)


@given(nested_word_automata(4, 6))
@settings(max_examples=100, deadline=None)
def test_emptiness_is_reachability_of_a_final_state_with_any_stack(nwa: NWA[int]) -> None:
    """Line 5 of Algorithm 1, as in section 3.3: start ∈ pre*(target)."""
    backward = weighted_pre_star(to_pds(nwa), with_any_stack(nwa, nwa.final), MIN_PLUS, steps)
    distances = [backward.configurations.weight(start) for start in start_configurations(nwa)]
    run = shortest_run(nwa)
    assert min((d for d in distances if d is not None), default=None) == (None if run is None else len(run.word))


@given(nested_word_automata(4, 6))
@settings(max_examples=150, deadline=None)
def test_a_shortest_run_is_a_shortest_path(nwa: NWA[int]) -> None:
    result = weighted_post_star(
        to_pds(nwa), configuration_set(start_configurations(nwa)), MIN_PLUS, steps
    ).configurations
    run = shortest_run(nwa)
    if run is not None:
        executed = list(executed_configurations(nwa, [run]))
        along = [config for config in executed if config[0] is P]
        assert [result.weight(config) for config in along] == list(range(len(run.word) + 1))
        for control, stack in executed:
            if isinstance(control, Popped):
                assert (P, (control.exit, *stack)) in executed


def test_executed_configurations_follow_calls_and_returns() -> None:
    nwa: NWA[str] = NWA()
    nwa.add_state("c", initial=True)
    nwa.add_state("r", final=True)
    nwa.add_call("c", "call", "e")
    nwa.add_return("e", "c", "ret", "r")
    run = shortest_run(nwa)
    assert run is not None and run.word.kinds == (Kind.CALL, Kind.RETURN)
    assert list(executed_configurations(nwa, [run])) == [
        (P, ("c",)),
        (P, ("e", "c")),
        (Popped("e"), ("c",)),
        (P, ("r",)),
    ]
