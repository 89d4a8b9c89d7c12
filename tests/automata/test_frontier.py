"""Frontiers against their definition, and against the paper's transducer composition in OpenFst."""

from __future__ import annotations

from typing import Any, TypeVar

import pynini
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.automata.frontier import Near, closest, closest_frontiers, frontiers, in_chop_but_not_executed
from mcveto.automata.nested_words import ANY
from mcveto.automata.nwa import NWA, Call, Internal, Return, Run
from mcveto.automata.nwa_emptiness import shortest_run
from mcveto.automata.nwa_to_pds import (
    executed_configurations,
    start_configurations,
    steps,
    to_pds,
    transition_of,
    with_any_stack,
)
from mcveto.automata.pautomaton import PAutomaton, configuration_set
from mcveto.automata.pds import PDS, Rule
from mcveto.automata.post_star import weighted_post_star
from mcveto.automata.pre_star import weighted_pre_star
from mcveto.automata.semirings import MIN_PLUS

from .oracles import Config, reachable, stacks
from .strategies import CONTROLS, SYMBOLS, automata, configurations, systems

TAIL = 3
W = TypeVar("W")
Arc: Any = vars(pynini)["Arc"]
CODES = {letter: number + 1 for number, letter in enumerate(CONTROLS + SYMBOLS)}
Relation = dict[tuple[Config, Config], int]


def cost(rule: Rule[str, str]) -> int:
    return len(rule.pushed)


def acceptor(automaton: PAutomaton[str, str, W], weigh: bool) -> Any:
    """The set as an OpenFst acceptor of words "control stack"."""

    def tropical(weight: W) -> float:
        return float(weight) if weigh else 0.0  # type: ignore[arg-type]

    fst = pynini.Fst()
    states = [fst.add_state() for _ in range(automaton.state_count)]
    start = fst.add_state()
    fst.set_start(start)
    for control in automaton.controls:
        arc = Arc(CODES[control], CODES[control], 0, states[automaton.entry(control)])
        fst.add_arc(start, arc)
    for state in range(automaton.state_count):
        for symbol, target, weight in automaton.transitions_from(state):
            fst.add_arc(states[state], Arc(CODES[symbol], CODES[symbol], tropical(weight), states[target]))
        if automaton.is_final(state):
            fst.set_final(states[state], tropical(automaton.final_weight(state)))
    return fst


def post_transducer(pds: PDS[str, str]) -> Any:
    """The paper's transducer for one step: rewrite the control and the top, copy the rest."""
    fst = pynini.Fst()
    start, copy = fst.add_state(), fst.add_state()
    fst.set_start(start)
    fst.set_final(copy, 0)
    for symbol in SYMBOLS:
        fst.add_arc(copy, Arc(CODES[symbol], CODES[symbol], 0, copy))
    for rule in pds.rules:
        state = fst.add_state()
        fst.add_arc(start, Arc(CODES[rule.control], CODES[rule.target], 0, state))
        if len(rule.pushed) == 2:
            following = fst.add_state()
            fst.add_arc(state, Arc(0, CODES[rule.pushed[0]], 0, following))
            state = following
        bottom = CODES[rule.pushed[-1]] if rule.pushed else 0
        fst.add_arc(state, Arc(CODES[rule.symbol], bottom, 0, copy))
    return fst


def short_words() -> Any:
    """Words of a control and up to TAIL + 1 stack symbols, so that relations can be listed."""
    fst = pynini.Fst()
    states = [fst.add_state() for _ in range(TAIL + 3)]
    fst.set_start(states[0])
    for letter, code in CODES.items():
        for position in range(TAIL + 2):
            if (position == 0) == (letter in CONTROLS):
                fst.add_arc(states[position], Arc(code, code, 0, states[position + 1]))
    for state in states[1:]:
        fst.set_final(state, 0)
    return fst


def listed(fst: Any) -> Relation:
    letters = {code: letter for letter, code in CODES.items()}
    relation: Relation = {}
    paths = fst.paths()
    while not paths.done():
        source, target = (
            tuple(letters[code] for code in labels if code) for labels in (paths.ilabels(), paths.olabels())
        )
        pair = ((source[0], source[1:]), (target[0], target[1:]))
        weight = int(float(paths.weight()))
        relation[pair] = min(weight, relation.get(pair, weight))
        paths.next()
    return relation


def composed(
    pds: PDS[str, str],
    start: PAutomaton[str, str, bool],
    target: PAutomaton[str, str, bool],
    executed: PAutomaton[str, str, bool],
    near: Near,
) -> Relation:
    """ID[X] ∘ post ∘ ID[post*(start) ∩ pre*(target) ∩ ¬X] by OpenFst."""
    forward = acceptor(weighted_post_star(pds, start, MIN_PLUS, cost).configurations, near is Near.START)
    backward = acceptor(weighted_pre_star(pds, target, MIN_PLUS, cost).configurations, near is Near.TARGET)
    x = acceptor(executed, False)
    chop = pynini.intersect(forward, backward)
    unexecuted = pynini.difference(chop, pynini.determinize(x))
    edges = pynini.compose(pynini.compose(x, post_transducer(pds)), unexecuted)
    return listed(pynini.compose(short_words(), edges))


def native(pds: PDS[str, str], found: PAutomaton[Rule[str, str], str, int | None]) -> Relation:
    relation: Relation = {}
    for rule in pds.rules:
        for tail in stacks(SYMBOLS, TAIL):
            weight = found.weight((rule, tail))
            if weight is not None:
                source = (rule.control, (rule.symbol, *tail))
                pair = (source, (rule.target, rule.pushed + tail))
                relation[pair] = min(weight, relation.get(pair, weight))
    return relation


@st.composite
def questions(
    draw: st.DrawFn,
) -> tuple[PDS[str, str], list[Config], PAutomaton[str, str, bool], PAutomaton[str, str, bool]]:
    """A system, start, targets, and as X either a part of what is reachable or an arbitrary regular set."""
    pds = draw(systems)
    start = draw(st.lists(configurations(2), min_size=1, max_size=2))
    reached = list(reachable(pds, start, 3))
    if draw(st.booleans()):
        executed = configuration_set(draw(st.lists(st.sampled_from(reached), min_size=1, max_size=4)))
    else:
        executed = draw(automata())
    if draw(st.booleans()):
        target = configuration_set([draw(st.sampled_from(reached))])
    else:
        target = draw(automata())
    return pds, start, target, executed


@given(questions(), st.sampled_from(list(Near)))
@settings(max_examples=300, deadline=None)
def test_frontiers_are_the_composed_transducers(
    question: tuple[PDS[str, str], list[Config], PAutomaton[str, str, bool], PAutomaton[str, str, bool]],
    near: Near,
) -> None:
    pds, start, target, executed = question
    first = configuration_set(start)
    unexecuted = in_chop_but_not_executed(pds, first, target, executed, near, cost)
    found = frontiers(pds, executed, unexecuted)
    relation = native(pds, found)
    assert relation == composed(pds, first, target, executed, near)

    nearest = closest(found, 5)
    distances = [frontier.distance for frontier in nearest]
    assert distances == sorted(distances)
    for frontier in nearest:
        assert frontier.source in executed and frontier.target not in executed
        assert frontier.rule.apply(frontier.source) == frontier.target
        assert unexecuted.weight(frontier.target) == frontier.distance
    if len(nearest) < 5:
        short = {(f.source, f.target) for f in nearest if len(f.source[1]) <= TAIL + 1}
        assert short == set(relation)
    elif relation:
        assert distances[0] <= min(relation.values())


@given(questions())
@settings(max_examples=150, deadline=None)
def test_a_frontier_exists_where_the_target_is_reachable_but_not_executed(
    question: tuple[PDS[str, str], list[Config], PAutomaton[str, str, bool], PAutomaton[str, str, bool]],
) -> None:
    """What makes proof generation progress: start ∈ X ∌ target and start ⇒* target give a frontier."""
    pds, start, _, _ = question
    reached = reachable(pds, start, 4)
    far = max(reached, key=reached.__getitem__)
    if far not in start:
        found = closest_frontiers(pds, configuration_set(start), configuration_set([far]), configuration_set(start), 1)
        assert found


def bar_program() -> tuple[NWA[str], list[Run[str]]]:
    """TR1669 Figure 7(b): foo calls bar2 if x == 0, else bar1, whose abstract graph has grown; executed was
    one run through bar1 that did not reach the target."""
    nwa: NWA[str] = NWA()
    nwa.add_state("foo", initial=True)
    nwa.add_state("ERR", final=True)
    nwa.add_internal("foo", "x!=0", "call1")
    nwa.add_internal("foo", "x==0", "call2")
    nwa.add_call("call1", "call bar1", "bar1.0")
    nwa.add_call("call2", "call bar2", "bar2")
    for step in range(6):
        nwa.add_internal(f"bar1.{step}", "loop", f"bar1.{step + 1}")
        nwa.add_internal(f"bar1.{step}", "other", f"other{step + 1}")
        if step:
            nwa.add_internal(f"other{step}", "loop", f"other{step + 1}")
    nwa.add_return("bar1.6", "call1", "ret", "after1")
    nwa.add_return("other6", "call1", "ret", "after2")
    nwa.add_return("bar2", "call2", "ret", "after2")
    nwa.add_internal("after1", "y!=10", "end")
    nwa.add_internal("after2", "y==10", "ERR")
    run = shortest_run(nwa, ["end"])
    assert run is not None
    return nwa, [run]


def test_the_closest_frontier_switches_to_another_procedure() -> None:
    nwa, runs = bar_program()
    pds = to_pds(nwa)
    executed = configuration_set(executed_configurations(nwa, runs))
    start, target = configuration_set(start_configurations(nwa)), with_any_stack(nwa, nwa.final)
    near_target = closest_frontiers(pds, start, target, executed, 9, Near.TARGET, steps)
    assert transition_of(near_target[0].rule) == Internal("bar1.5", "other", "other6")
    assert [f.distance for f in near_target] == [2, 3, 3, 4, 5, 6, 7]
    # the branch to bar2 is as near as the second nearest in bar1: without bar1's last step it comes first
    assert Internal("foo", "x==0", "call2") in [transition_of(f.rule) for f in near_target[1:4]]
    near_start = closest_frontiers(pds, start, target, executed, 1, Near.START, steps)
    assert transition_of(near_start[0].rule) == Internal("foo", "x==0", "call2")
    assert len(closest_frontiers(pds, start, target, executed, 99, Near.ANY, steps)) == 7


@pytest.mark.parametrize("near", list(Near))
def test_a_frontier_at_a_return_is_the_arrival(near: Near) -> None:
    """An exit was executed, its return was not: the frontier is the return step, not the pop before it."""
    nwa: NWA[str] = NWA()
    nwa.add_state("c", initial=True)
    nwa.add_call("c", "call", "x")
    nwa.add_return("x", "c", ANY, "TS")
    run = shortest_run(nwa, ["x"])
    assert run is not None
    [frontier] = closest_frontiers(
        to_pds(nwa),
        configuration_set(start_configurations(nwa)),
        with_any_stack(nwa, ["TS"]),
        configuration_set(executed_configurations(nwa, [run])),
        9,
        near,
        steps,
    )
    assert transition_of(frontier.rule) == Return("x", "c", ANY, "TS")
    assert isinstance(transition_of(to_pds(nwa).rules[0]), Call)
