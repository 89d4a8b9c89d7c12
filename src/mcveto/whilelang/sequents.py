"""Sequents Γ ⊢ P, derivation trees, and the verification conditions at their leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mcveto.whilelang.formatter import MATHEMATICAL, Style, formula_text
from mcveto.whilelang.syntax import Connective, Formula, Position


@dataclass(frozen=True, slots=True)
class Sequent:
    assumptions: tuple[Formula, ...]
    goal: Formula

    def text(self, style: Style = MATHEMATICAL) -> str:
        left = ", ".join(formula_text(item, style) for item in self.assumptions)
        return f"{left} {style.of('⊢')} {formula_text(self.goal, style)}".lstrip()

    def formula(self) -> Formula:
        """The conjunction of the assumptions implies the goal."""
        if not self.assumptions:
            return self.goal
        context = self.assumptions[0]
        for item in self.assumptions[1:]:
            context = Connective("∧", context, item)
        return Connective("→", context, self.goal)


@dataclass(frozen=True, slots=True)
class Condition:
    """A verification condition: a sequent without modalities, and where it comes from.

    `why` names what it is about (assertion, memory, division, postcondition, unwinding, cut, invariant). `inputs` are
    the variables that stand for the inputs of its path, in order. `ending` is set where a loop was cut: with it as a
    further assumption the path is one that really leaves the loop. `unwinding` is the part that says so, if demanded.
    """

    sequent: Sequent
    why: str
    at: Position | None = None
    inputs: tuple[str, ...] = ()
    ending: Formula | None = None
    unwinding: Formula | None = None


@dataclass(slots=True)
class Node:
    """A step of a derivation: the rule that reduces its sequent to those of its children."""

    rule: str
    show: Callable[[], Sequent]
    children: list[Node] = field(default_factory=list)
    condition: Condition | None = None
    """At a leaf: what is left to arithmetic."""
    closed: bool | None = None
    """At a leaf: whether the condition is valid; None while nobody knows."""
    note: str = ""

    def leaves(self) -> Iterator[Node]:
        stack = [self]
        while stack:
            node = stack.pop()
            if not node.children:
                yield node
            stack.extend(reversed(node.children))
