"""Suffixes that nothing completes are given up early, however many there are."""

from __future__ import annotations

import pytest

from mcveto.counterexamples.enumeration import Enumeration, Limits
from mcveto.counterexamples.erase import Erase
from mcveto.counterexamples.model_parser import parse_model
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.reachable import Reachable
from mcveto.counterexamples.recursion import MinimumRecursion
from mcveto.property.typestate_parser import parse_typestate

PROPERTY = """automaton property
event a
states good
start good
error bad
good -> bad on a
"""


def enumerate_all(text: str, expansions: int, stack_height: int | None = None) -> tuple[Enumeration, list[list[str]]]:
    """All traces, as the tops of their stacks."""
    product = Product(parse_model(text), parse_typestate(PROPERTY))
    limits = Limits(expansions=expansions, stack_height=stack_height)
    enumeration = Enumeration(Reachable(product), MinimumRecursion(Erase(product)), limits)
    found = [[witness.node(number) for number in range(len(witness) + 1)] for witness in enumeration]
    return enumeration, found


def diamonds(control: str, count: int) -> list[str]:
    """2^count ways from d0 to its end."""
    lines = []
    for number in range(count):
        for side in ("l", "r"):
            lines.append(f"{control}: d{number} -> {control}: {side}{number}")
            lines.append(f"{control}: {side}{number} -> {control}: d{number + 1}")
    return lines


def test_unnecessary_recursion_before_many_ways() -> None:
    """The ways to the error are open only after recursion that is not wanted; one other trace is."""
    model = [
        "model down",
        "start p0: m",
        "p0: m -> p0: f d0",
        *(f"p{depth}: f -> p{depth + 1}: f x" for depth in range(3)),
        *(f"p{depth}: {point} -> p{depth}: pop" for depth in range(4) for point in ("f", "x")),
        *diamonds("p3", 30),
        "p1: d0 -> p1: z",
        "p1: z -> p1: pop",
        "event d30: a",
        "p3: d30 -> p3: pop",
        "event z: a",
    ]
    enumeration, found = enumerate_all("\n".join(model), 3_000)
    assert enumeration.is_exhaustive, enumeration.stopped
    assert found == [["m", "f", "f", "x", "d0", "z", ""]]


@pytest.mark.parametrize("size", [4, 14])
def test_ways_that_lead_back_to_the_suffix(size: int) -> None:
    """Whatever comes before the gate has come through the gate: there are no other traces than the straight one."""
    nodes = [f"k{number}" for number in range(size)]
    model = ["finite gate", "start s", "s -> gate", "gate -> e", "e -> e", "event e: a"]
    model += [line for node in nodes for line in (f"gate -> {node}", f"{node} -> gate")]
    model += [f"{node} -> {other}" for node in nodes for other in nodes if node != other]
    enumeration, found = enumerate_all("\n".join(model), 5_000)
    assert enumeration.is_exhaustive, enumeration.stopped
    assert found == [["s", "gate", "e", "e"]]


def test_many_ways_before_the_gate_is_seen() -> None:
    """The estimate leads through 2^20 ways before it turns out that all of them need the gate once more."""
    model = ["model late", "start p: s", "p: s -> p: gate", "p: gate -> p: d0", "p: gate -> p: e"]
    model += [*diamonds("p", 20), "p: d20 -> p: gate", "p: e -> p: e", "event e: a"]
    enumeration, found = enumerate_all("\n".join(model), 5_000)
    assert enumeration.is_exhaustive, enumeration.stopped
    assert found == [["s", "gate", "e", "e"]]


def test_infinitely_many_stacks_that_no_run_builds() -> None:
    """t toggles, so stacks of its frames are wanted at any height; but nothing wanted leads to the first of them."""
    model = [
        "model toggle",
        "start p: m",
        "p: m -> p: f g",
        "p: f -> p: f x",
        "p: f -> q: f x",
        "p: f -> p: pop",
        "p: x -> p: pop",
        "q: f -> r: f x",
        "r: f -> r: pop",
        "r: x -> r: pop",
        # Only in r, which two pending frames x lead to, with the same effect as one.
        "r: g -> r: t",
        "r: t -> w: t y",
        "w: t -> r: t y",
        "w: t -> w: pop",
        "r: t -> r: pop",
        "w: y -> r: pop",
        "r: y -> w: pop",
        "w: t -> w: e",
        "event e: a",
        "w: e -> w: pop",
    ]
    enumeration, found = enumerate_all("\n".join(model), 100_000)
    assert enumeration.is_exhaustive, enumeration.stopped
    assert found == []


def test_what_is_on_the_stack_at_the_start_is_wanted() -> None:
    """Nobody called the two frames b, so neither is unnecessary recursion."""
    enumeration, found = enumerate_all("model start\nstart a b b\na -> pop\nb -> pop\nevent b: a", 1_000)
    assert enumeration.is_exhaustive
    assert found == [["a", "b", "b"]]
