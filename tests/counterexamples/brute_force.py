"""All minimum-recursion loop-free witness traces by blind enumeration, straight from the definitions.

Works on names, knows nothing of numbers, entries or distances, and shares no code with what it judges except the
parsed model and automaton. Runs are built forwards, one configuration after another, until the first error state;
condition 1 is looked up in the run, condition 2 on every call, with `erase` iterated over all heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as pairs

from mcveto.counterexamples.model import Model
from mcveto.property.typestate import Configuration, Typestate

Control = tuple[str, Configuration]
Stack = tuple[str, ...]
State = tuple[Control, Stack]
Rule = tuple[Control, str, Control, Stack]
Relation = dict[Control, frozenset[Control]]


@dataclass
class TooMany(Exception):
    reason: str


class BruteForce:
    def __init__(self, model: Model, automaton: Typestate, budget: int = 20_000, height: int = 12) -> None:
        self.model, self.automaton = model, automaton
        self.budget, self.height = budget, height
        label_sets = [(), *(model.labels(*node) for node in model.labelled())]
        configurations = automaton.closure(label_sets)
        self.controls: list[Control] = list(pairs(model.controls, configurations))
        self.rules: list[Rule] = []
        for rule in model.rules():
            labels = model.labels(rule.control, rule.symbol)
            pushed = tuple(model.symbols[symbol] for symbol in rule.pushed)
            for configuration in configurations:
                for following in automaton.successors(configuration, labels):
                    self.rules.append(
                        (
                            (model.controls[rule.control], configuration),
                            model.symbols[rule.symbol],
                            (model.controls[rule.target], following),
                            pushed,
                        )
                    )
        self.rules = list(dict.fromkeys(self.rules))
        self._erase: set[tuple[Control, str, Control]] | None = None

    def erase(self) -> set[tuple[Control, str, Control]]:
        """The least model of the three rules of section 3."""
        if self._erase is None:
            found: set[tuple[Control, str, Control]] = set()
            while True:
                new = set(found)
                for control, symbol, target, pushed in self.rules:
                    if not pushed:
                        new.add((control, symbol, target))
                    elif len(pushed) == 1:
                        new |= {(control, symbol, c) for (a, b, c) in found if a == target and b == pushed[0]}
                    else:
                        middle = {c for (a, b, c) in found if a == target and b == pushed[0]}
                        new |= {(control, symbol, c) for (a, b, c) in found if a in middle and b == pushed[1]}
                if new == found:
                    break
                found = new
            self._erase = found
        return self._erase

    def effect(self, word: Stack) -> Relation:
        relation: Relation = {control: frozenset({control}) for control in self.controls}
        for symbol in word:
            step = {
                control: frozenset(c for (a, b, c) in self.erase() if a == control and b == symbol)
                for control in self.controls
            }
            relation = {control: frozenset().union(*(step[m] for m in ends)) for control, ends in relation.items()}
        return relation

    def necessary(self, rest: Stack) -> bool:
        """Condition 2 for the call that pushed rest[0]: its stack increase against that of the one before it.

        What the stack was at the start nobody had to call: it is as good later."""
        start = tuple(self.model.symbols[symbol] for symbol in self.model.start_stack[1:])
        if start[len(start) - len(rest) :] == rest:
            return True
        symbol = rest[0]
        places = [number for number, item in enumerate(rest) if item == symbol]
        if len(places) == 1:
            return True
        deepest = places[-1]
        return self.effect(rest[: deepest + 1]) != self.effect(rest[places[1] : deepest + 1])

    def witnesses(self) -> list[tuple[tuple[str, Stack], ...]]:
        """Every trace as (automaton state, stack) pairs; raises TooMany."""
        model, automaton = self.model, self.automaton
        stack = tuple(model.symbols[symbol] for symbol in model.start_stack)
        found: list[tuple[tuple[str, Stack], ...]] = []
        worklist: list[tuple[State, ...]] = [
            (((model.controls[model.start_control], configuration), stack),) for configuration in automaton.initial()
        ]
        while worklist:
            self.budget -= 1
            if self.budget < 0:
                raise TooMany("runs")
            run = worklist.pop()
            control, stack = run[-1]
            if control[1].state in automaton.errors:
                found.append(tuple((configuration.state, stack) for (_, configuration), stack in run))
                continue
            for source, symbol, target, pushed in self.rules:
                if source != control or not stack or stack[0] != symbol:
                    continue
                following = (target, (*pushed, *stack[1:]))
                if following in run:
                    continue
                if len(pushed) == 2 and not self.necessary(following[1][1:]):
                    continue
                if len(following[1]) > self.height:
                    raise TooMany("height")
                worklist.append((*run, following))
        return found
