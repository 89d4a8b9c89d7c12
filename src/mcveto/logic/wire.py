"""Terms as plain data, for another process: nodes in an order where arguments come first, each sent once.

The receiver interns the nodes as they are, without simplifying again: it gets exactly the sender's terms.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcveto.logic.node import Term, intern

Node = tuple[str, tuple[int, ...], int, Any, int]


class Encoder:
    """Numbers terms; remembers what the receiver already has."""

    def __init__(self) -> None:
        self._numbers: dict[Term, int] = {}

    def encode(self, terms: Iterable[Term]) -> tuple[list[Node], list[int]]:
        """The nodes the receiver does not have yet, and the numbers of the terms."""
        numbers, fresh = self._numbers, []
        roots = list(terms)
        stack = list(reversed(roots))
        while stack:
            t = stack[-1]
            if t in numbers:
                stack.pop()
                continue
            waiting = [x for x in t.args if x not in numbers]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            numbers[t] = len(numbers)
            fresh.append((t.op, tuple([numbers[x] for x in t.args]), t.width, t.data, t.address_width))
        return fresh, [numbers[t] for t in roots]


class Decoder:
    """The other end of an `Encoder`."""

    def __init__(self) -> None:
        self._terms: list[Term] = []

    def extend(self, nodes: Iterable[Node]) -> None:
        """Take new nodes in."""
        terms = self._terms
        for op, args, width, data, address_width in nodes:
            terms.append(intern(op, tuple([terms[i] for i in args]), width, data, address_width))

    def term(self, number: int) -> Term:
        """The term with a number."""
        return self._terms[number]
