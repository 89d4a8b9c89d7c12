"""The B-graph: the rule-graph with a regular expression at each node for the rest of the stack.

Basu et al., section 4 and Fig. 5, second half of `constructB-graph`, with `regExp` (Kleene's construction). The paper
lets concatenation cancel, γ.(−γ) = ε, but does not say how that works under a star. We cancel first: where a push of γ
is followed, through edges that leave the rest of the stack alone, by an edge that takes γ off, an ε-edge goes from the
beginning to the end of that path, until nothing changes (Benois, 1969). Then the words of pushes alone are exactly the
stacks, and `regExp` runs on a graph without −γ. Its cost is cubic: this is the reference for small models, `reachable`
the way for large ones. Expressions read the stack from its bottom.
"""

from __future__ import annotations

from mcveto.counterexamples.model import NOTHING
from mcveto.counterexamples.regular_expression import (
    EMPTY,
    EPSILON,
    Expression,
    derivative,
    expression_text,
    reverse,
    sequence,
    single,
    star,
    union,
)
from mcveto.counterexamples.rule_graph import Node, RuleGraph


class BGraph:
    def __init__(self, rules: RuleGraph) -> None:
        self.rules = rules
        self.silent = self._cancel()
        self._order = self._reached()
        self._number = {node: number for number, node in enumerate(self._order, 1)}
        self._store: dict[tuple[int, int, int], Expression] = {}
        self._direct: dict[tuple[int, int], Expression] = {}
        for source, targets in self.silent.items():
            for target in targets:
                self._connect(source, target, EPSILON)
        for edge in rules.edges:
            if edge.pushes != NOTHING:
                self._connect(edge.source, edge.target, single(edge.pushes))

    @property
    def nodes(self) -> list[Node]:
        """The nodes that some stack reaches."""
        return self._order

    def annotation(self, node: Node) -> Expression:
        """The rest of the stack at a node, read from the bottom."""
        if node not in self._number:
            return EMPTY
        number, count = self._number[node], len(self._order)
        # Indices grow with the distance from the root; recursion depth is the number of nodes.
        for limit in range(count):
            self._expression(1, number, limit)
        found = self._expression(1, number, count)
        return union(found, EPSILON) if number == 1 else found

    def text(self, node: Node) -> str:
        """The annotation as the paper writes it, top first, without the bottom symbol."""
        product = self.rules.product
        annotation = derivative(self.annotation(node), product.bottom)
        return expression_text(reverse(annotation), product.model.symbols)

    def _connect(self, source: Node, target: Node, expression: Expression) -> None:
        if source in self._number and target in self._number:
            key = (self._number[source], self._number[target])
            self._direct[key] = union(self._direct.get(key, EMPTY), expression)

    def _cancel(self) -> dict[Node, dict[Node, None]]:
        """All edges that leave the rest of the stack as it is, those of whole calls among them."""
        silent: dict[Node, dict[Node, None]] = {node: {} for node in self.rules.nodes}
        takes: dict[tuple[Node, int], list[Node]] = {}
        pushes = []
        for edge in self.rules.edges:
            if edge.takes != NOTHING:
                takes.setdefault((edge.source, edge.takes), []).append(edge.target)
            elif edge.pushes != NOTHING:
                pushes.append(edge)
            else:
                silent[edge.source][edge.target] = None
        changed = True
        while changed:
            changed = False
            for source, entry, symbol, _ in pushes:
                for node in _closure(silent, entry):
                    for end in takes.get((node, symbol), ()):
                        if end not in silent[source]:
                            silent[source][end] = None
                            changed = True
        return silent

    def _reached(self) -> list[Node]:
        following: dict[Node, dict[Node, None]] = {node: dict(targets) for node, targets in self.silent.items()}
        for edge in self.rules.edges:
            if edge.pushes != NOTHING:
                following[edge.source][edge.target] = None
        return _closure(following, self.rules.root)

    def _expression(self, source: int, target: int, limit: int) -> Expression:
        """regExp(i, j, k): the paths from i to j whose inner nodes are at most k."""
        if limit == 0:
            return self._direct.get((source, target), EMPTY)
        key = (source, target, limit)
        found = self._store.get(key)
        if found is None:
            before = self._expression(source, target, limit - 1)
            there = self._expression(source, limit, limit - 1)
            back = EMPTY if there.is_empty else self._expression(limit, target, limit - 1)
            if back.is_empty:
                found = before
            else:
                loop = star(self._expression(limit, limit, limit - 1))
                found = union(before, sequence(sequence(there, loop), back))
            self._store[key] = found
        return found


def _closure(following: dict[Node, dict[Node, None]], start: Node) -> list[Node]:
    found = {start: None}
    for node in (order := [start]):
        for target in following.get(node, ()):
            if target not in found:
                found[target] = None
                order.append(target)
    return order
