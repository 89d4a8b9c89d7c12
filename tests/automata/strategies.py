"""Small random instances: large enough for recursion, small enough for the naive oracles."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcveto.automata.nested_words import ANY
from mcveto.automata.nwa import NWA
from mcveto.automata.pautomaton import PAutomaton
from mcveto.automata.pds import PDS, Rule
from mcveto.automata.semirings import BOOLEAN

CONTROLS = "pq"
SYMBOLS = "abc"

controls = st.sampled_from(CONTROLS)
symbols = st.sampled_from(SYMBOLS)


def stacks(height: int) -> SearchStrategy[tuple[str, ...]]:
    return st.lists(symbols, max_size=height).map(tuple)


def configurations(height: int) -> SearchStrategy[tuple[str, tuple[str, ...]]]:
    return st.tuples(controls, stacks(height))


rules: SearchStrategy[Rule[str, str]] = st.builds(
    Rule, controls, symbols, controls, stacks(2), st.sampled_from([None, "x", "y"])
)
systems: SearchStrategy[PDS[str, str]] = st.lists(rules, max_size=7).map(PDS)


@st.composite
def automata(draw: DrawFn, most_states: int = 3) -> PAutomaton[str, str, bool]:
    """A Boolean P-automaton with arbitrary transitions, also into entry states."""
    automaton: PAutomaton[str, str, bool] = PAutomaton(BOOLEAN)
    states = [automaton.entry(control) for control in draw(st.sampled_from(["pq", "p", "q"]))]
    states += [automaton.new_state() for _ in range(draw(st.integers(0, most_states)))]
    some = st.sampled_from(states)
    for source, symbol, target in draw(st.lists(st.tuples(some, symbols, some), max_size=8)):
        automaton.add(source, symbol, target, True)
    for state in draw(st.lists(some, max_size=2)):
        automaton.add_final(state, True)
    return automaton


@st.composite
def nested_word_automata(draw: DrawFn, most_states: int = 4, edges: int = 5) -> NWA[int]:
    states = st.integers(0, most_states - 1)
    labels = st.sampled_from(["x", "y", ANY])
    nwa: NWA[int] = NWA()
    for state in draw(st.lists(states, min_size=1, max_size=2)):
        nwa.add_state(state, initial=True)
    for state in draw(st.lists(states, max_size=2)):
        nwa.add_state(state, final=True)
    for source, label, target in draw(st.lists(st.tuples(states, labels, states), max_size=edges)):
        nwa.add_internal(source, label, target)
    for source, label, target in draw(st.lists(st.tuples(states, labels, states), max_size=edges)):
        nwa.add_call(source, label, target)
    for source, call, label, target in draw(st.lists(st.tuples(states, states, labels, states), max_size=edges)):
        nwa.add_return(source, call, label, target)
    return nwa
