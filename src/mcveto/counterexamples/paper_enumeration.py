"""Phase 2 as the paper has it: `constructPaths` over the B-graph. The reference for `enumeration`, for small models.

Basu et al., section 4 and Fig. 5: for every node in an error state, stacks are taken from its expression, lowest first,
and all traces back to the start are searched depth-first, each predecessor being kept only if its stack belongs to its
node's expression. Two deviations: a stack is dropped as soon as its frames break condition 2, and the search ends when
no stack is left. The paper ends at the first height that yields no trace, which loses traces where heights have gaps.
"""

from __future__ import annotations

from mcveto.counterexamples.b_graph import BGraph
from mcveto.counterexamples.model import NOTHING
from mcveto.counterexamples.product import Head, Product
from mcveto.counterexamples.recursion import Recursion
from mcveto.counterexamples.regular_expression import Expression, accepts, derivative, is_nullable
from mcveto.counterexamples.rule_graph import Edge, RuleGraph
from mcveto.counterexamples.stacks import Stack, StackTable, symbols_of
from mcveto.counterexamples.trace import State, Witness


class TooHigh(Exception):
    """Stacks grow beyond the limit."""


class PaperEnumeration:
    def __init__(self, product: Product, recursion: Recursion, max_height: int = 40) -> None:
        self._product = product
        self._recursion = recursion
        self._max_height = max_height
        rules = RuleGraph(product)
        self.graph = BGraph(rules)
        self._stacks = StackTable()
        self._into: dict[Head, list[Edge]] = {}
        for edge in rules.edges:
            self._into.setdefault(edge.target, []).append(edge)
        self._starts = set(rules.starts)
        self._initial: Stack | None = None
        for symbol in reversed(product.start_stack[1:]):
            self._initial = self._stacks.push(symbol, self._initial)
        recursion.begin_with(self._initial)
        self._annotations: dict[Head, Expression] = {}
        self._belongs: dict[tuple[Head, int], bool] = {}

    def witnesses(self) -> list[Witness]:
        """All minimum-recursion loop-free witness traces, shortest first; raises TooHigh."""
        found: list[Witness] = []
        for node in self.graph.nodes:
            if node >= 0 and self._product.is_final[self._product.split(node)[0]]:
                for stack in self._stacks_of(node):
                    found += self._all_paths(node, stack)
        return sorted(found, key=len)

    def _annotation(self, node: Head) -> Expression:
        if node not in self._annotations:
            self._annotations[node] = self.graph.annotation(node)
        return self._annotations[node]

    def _stacks_of(self, node: Head) -> list[Stack | None]:
        """The stacks of the node's expression that condition 2 allows, lowest first."""
        found: list[Stack | None] = []
        layer: list[tuple[Stack | None, Expression]] = [(None, self._annotation(node))]
        while layer:
            found += [stack for stack, rest in layer if is_nullable(rest)]
            following: list[tuple[Stack | None, Expression]] = []
            for stack, rest in layer:
                for symbol in range(self._product.symbol_count):
                    left = derivative(rest, symbol)
                    higher = self._stacks.push(symbol, stack)
                    if not left.is_empty and self._recursion.allows(higher):
                        following.append((higher, left))
                        self._check_height(higher)
            layer = following
        return found

    def _check_height(self, stack: Stack) -> None:
        if stack.height > self._max_height:
            raise TooHigh(f"stacks higher than {self._max_height}")

    def _all_paths(self, node: Head, stack: Stack | None) -> list[Witness]:
        """findAllPaths of Fig. 5."""
        found = []
        worklist: list[tuple[tuple[Head, Stack | None], ...]] = [((node, stack),)]
        while worklist:
            suffix = worklist.pop()
            head, stack = suffix[0]
            if head in self._starts and stack is self._initial:
                states = [State(*self._product.split(item), below) for item, below in suffix]
                found.append(Witness(self._product, tuple(states)))
            for edge in self._into.get(head, ()):
                if edge.source < 0:
                    continue
                before = stack
                if edge.pushes != NOTHING:
                    if stack is None or stack.symbol != edge.pushes:
                        continue
                    before = stack.below
                elif edge.takes != NOTHING:
                    before = self._stacks.push(edge.takes, stack)
                    if not self._recursion.allows(before):
                        continue
                    self._check_height(before)
                configuration = (edge.source, before)
                if configuration not in suffix and self._is_reached(edge.source, before):
                    worklist.append((configuration, *suffix))
        return found

    def _is_reached(self, head: Head, stack: Stack | None) -> bool:
        key = (head, 0 if stack is None else stack.number)
        if key not in self._belongs:
            word = symbols_of(stack)[::-1]
            self._belongs[key] = accepts(self._annotation(head), word)
        return self._belongs[key]
