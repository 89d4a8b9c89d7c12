"""Pushdown systems.

TR1669 section 3.3, Definition 2, with rules in the usual normal form: a rule pushes at most two
symbols, which is all that the conversion of a nested word automaton needs. Weights are not part of a
rule; the algorithms take a function from rules to weights, so that one system can be queried with
several semirings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from mcveto.late_methods import dataclass

P = TypeVar("P", bound=Hashable)
G = TypeVar("G", bound=Hashable)

Configuration = tuple[P, tuple[G, ...]]
"""A control location and a stack, its top first."""


@dataclass(frozen=True)
class Rule(Generic[P, G]):
    """⟨control, symbol⟩ -action→ ⟨target, pushed⟩; the action None is ε."""

    control: P
    symbol: G
    target: P
    pushed: tuple[G, ...]
    action: Hashable = None

    def __post_init__(self) -> None:
        if len(self.pushed) > 2:
            raise ValueError(f"a rule pushes at most two symbols, not {len(self.pushed)}")
        if self.symbol is None or None in self.pushed:
            raise ValueError("None is not a stack symbol")

    def apply(self, configuration: Configuration[P, G]) -> Configuration[P, G]:
        """The successor by this rule; ValueError if the rule does not apply."""
        control, stack = configuration
        if control != self.control or not stack or stack[0] != self.symbol:
            raise ValueError(f"rule {self} does not apply to {configuration}")
        return self.target, self.pushed + stack[1:]


class PDS(Generic[P, G]):
    def __init__(self, rules: Iterable[Rule[P, G]] = ()) -> None:
        self._rules: dict[Rule[P, G], None] = {}
        self._by_head: dict[tuple[P, G], list[Rule[P, G]]] = {}
        self._controls: dict[P, None] = {}
        self._symbols: dict[G, None] = {}
        for rule in rules:
            self.add(rule)

    def add(self, rule: Rule[P, G]) -> None:
        if rule in self._rules:
            return
        self._rules[rule] = None
        self._by_head.setdefault((rule.control, rule.symbol), []).append(rule)
        self._controls.update(dict.fromkeys((rule.control, rule.target)))
        self._symbols.update(dict.fromkeys((rule.symbol, *rule.pushed)))

    @property
    def rules(self) -> tuple[Rule[P, G], ...]:
        return tuple(self._rules)

    @property
    def controls(self) -> tuple[P, ...]:
        return tuple(self._controls)

    @property
    def symbols(self) -> tuple[G, ...]:
        return tuple(self._symbols)

    def rules_for(self, control: P, symbol: G) -> tuple[Rule[P, G], ...]:
        return tuple(self._by_head.get((control, symbol), ()))

    def successors(self, configuration: Configuration[P, G]) -> tuple[Configuration[P, G], ...]:
        """Exactly post({configuration}), one step."""
        control, stack = configuration
        if not stack:
            return ()
        return tuple(rule.apply(configuration) for rule in self.rules_for(control, stack[0]))


def run_rules(start: Configuration[P, G], rules: Iterable[Rule[P, G]]) -> Configuration[P, G]:
    """The configuration that the rule sequence leads to from `start`; ValueError if it does not apply."""
    configuration = start
    for rule in rules:
        configuration = rule.apply(configuration)
    return configuration
