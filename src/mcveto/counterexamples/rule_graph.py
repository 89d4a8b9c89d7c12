"""The rule-graph of a product: how its rules change the top of the stack, and what they do to the rest.

Basu et al., section 4 and Fig. 5, first half of `constructB-graph`. Nodes are heads; an edge carries the symbol it
pushes onto the rest of the stack, or the symbol it takes off, or nothing. Error states have no outgoing edges. Nodes
are made as they are reached; the paper makes P × Γ. What the start has below its top is as if pushed by nodes before it
(negative numbers), so that every stack is a word of pushes.
"""

from __future__ import annotations

from typing import NamedTuple

from mcveto.counterexamples.model import NOTHING
from mcveto.counterexamples.product import Head, Product

Node = int


class Edge(NamedTuple):
    source: Node
    target: Node
    pushes: int = NOTHING
    takes: int = NOTHING


class RuleGraph:
    def __init__(self, product: Product) -> None:
        self.product = product
        self.nodes: dict[Node, None] = {}
        self.edges: dict[Edge, None] = {}
        self.starts = [product.head(control, product.start_stack[0]) for control in product.starts]
        rest = product.start_stack[1:]
        self.root: Node = -len(rest)
        pushed = dict.fromkeys(rest)
        for depth, symbol in enumerate(reversed(rest)):
            node = self.root + depth
            self.nodes[node] = None
            for target in self.starts if node == -1 else [node + 1]:
                self.edges[Edge(node, target, pushes=symbol)] = None
        self._grow(pushed)

    def _grow(self, pushed: dict[int, None]) -> None:
        """Follows all rules; a rule that pops leads to every symbol that anything pushes."""
        product = self.product
        popping: list[tuple[Head, int]] = []
        worklist = list(self.starts)

        def take(head: Head, control: int, symbol: int) -> None:
            target = product.head(control, symbol)
            self.edges[Edge(head, target, takes=symbol)] = None
            worklist.append(target)

        while worklist:
            head = worklist.pop()
            if head in self.nodes:
                continue
            self.nodes[head] = None
            if product.is_final[product.split(head)[0]]:
                continue
            for target, first, second in product.rules(head):
                if first == NOTHING:
                    popping.append((head, target))
                    for symbol in tuple(pushed):
                        take(head, target, symbol)
                    continue
                following = product.head(target, first)
                self.edges[Edge(head, following, pushes=second)] = None
                worklist.append(following)
                if second != NOTHING and second not in pushed:
                    pushed[second] = None
                    for popper, control in tuple(popping):
                        take(popper, control, second)
