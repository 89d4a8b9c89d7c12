"""Where the paper's definitions say less, or other, than one would like; each with the smallest model that shows it."""

from __future__ import annotations

from mcveto.counterexamples.enumeration import Enumeration, Limits
from mcveto.counterexamples.erase import Erase
from mcveto.counterexamples.finder import Found, Request, find_counterexamples
from mcveto.counterexamples.model_parser import parse_model
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.reachable import Reachable
from mcveto.counterexamples.recursion import MinimumRecursion
from mcveto.property.typestate_parser import parse_typestate
from tests.counterexamples.brute_force import BruteForce

# f: event, then call f again (back at r), or leave.
RECURSIVE = "model m\nstart m0\nm0 -> f m1\nf -> g\ng -> f r\ng -> r\nr -> pop\nm1 -> m1\nevent f: step\n"


def find(model: str, automaton: str, request: Request | None = None) -> Found:
    return find_counterexamples(parse_model(model), parse_typestate(automaton), request)


def test_recursion_that_is_needed_on_the_way_down() -> None:
    """Three nested calls are needed, yet nothing happens on the way up: condition 2 calls the third one unnecessary."""
    automaton = "automaton a\nevent step\nstates q0 q1 q2\nstart q0\nerror bad\n"
    automaton += "q0 -> q1 on step\nq1 -> q2 on step\nq2 -> bad on step\n"
    assert BruteForce(parse_model(RECURSIVE), parse_typestate(automaton)).witnesses() == []
    found = find(RECURSIVE, automaton)
    assert found.is_violated
    assert len(found.witnesses) == 1
    assert "the shortest one is shown" in found.notes[0]
    # Asked for by depth instead, the trace is an ordinary one.
    bounded = find(RECURSIVE, automaton, Request(recursion=3))
    assert bounded.is_exhaustive and not bounded.notes
    assert [witness.key for witness in bounded.witnesses] == [found.witnesses[0].key]
    assert find(RECURSIVE, automaton, Request(recursion=1)).notes


def test_effects_that_alternate() -> None:
    """A procedure that toggles on the way up satisfies condition 2 at every depth: there are infinitely many traces."""
    model = RECURSIVE.replace("event f: step", "event r: toggle\nevent m1: check")
    automaton = "automaton a\nevent toggle\nevent check\nstates q0 q1\nstart q0\nerror bad\n"
    automaton += "q0 -> q1 on toggle\nq1 -> q0 on toggle\nq1 -> bad on check\n"
    found = find(model, automaton, Request(count=5, limits=Limits(expansions=20_000)))
    assert len(found.witnesses) == 5
    assert not found.is_exhaustive
    assert "ended" in found.stopped
    assert len({len(witness) for witness in found.witnesses}) == 5


def test_heights_with_gaps() -> None:
    """f and g call each other, and only g fails: traces end at every second height."""
    model = "model m\nstart f\nf -> g rf\nf -> x\nx -> pop\nrf -> pop\ng -> h\nh -> f rg\nrg -> pop\nevent g: step\n"
    automaton = "automaton a\nevent step\nstates q0 q1\nstart q0\nerror bad\nq0 -> q0 on step\nq0 -> bad on step\n"
    product = Product(parse_model(model), parse_typestate(automaton))
    enumeration = Enumeration(Reachable(product), MinimumRecursion(Erase(product)))
    heights = {len(witness.stack(len(witness))) for witness in enumeration}
    assert enumeration.is_exhaustive
    assert heights == {2}  # the longer ones are unnecessary here …
    bounded = find(model, automaton, Request(recursion=2))
    assert bounded.is_exhaustive
    assert {len(witness.stack(len(witness))) for witness in bounded.witnesses} == {2, 4}  # … and 3 never occurs


def test_an_error_in_the_very_last_step() -> None:
    """The paper's B-graph has no node for an empty stack; the error of popping the last symbol must not be lost."""
    automaton = "automaton a\nevent end\nstates s\nstart s\nerror bad\ns -> bad on end\n"
    found = find("model m\nstart a\na -> b\nb -> pop\nevent b: end\n", automaton)
    assert [witness.key[-1] for witness in found.witnesses] == [("bad", ())]


def test_a_start_stack_of_several_symbols() -> None:
    automaton = "automaton a\nevent end\nstates s\nstart s\nerror bad\ns -> bad on end\n"
    found = find("model m\nstart a b c\na -> pop\nb -> pop\nc -> c\nevent c: end\n", automaton)
    assert [stack for _, stack in found.witnesses[0].key] == [("a", "b", "c"), ("b", "c"), ("c",), ("c",)]
    assert found.is_exhaustive
