"""Is a condition possible on a path? A few likely values are tried before the solver is asked.

A hint is an assignment that was good once. It is never trusted: what it claims is evaluated on the conjuncts that
matter. Undecided counts as possible, which loses nothing but precision.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from mcveto.engines.path import Path
from mcveto.engines.queries import Model, No, Queries
from mcveto.engines.simulation.value_ranges import listing
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term

_MOST_VARIABLES = 8
_MOST_NODES = 120
_MOST_GUESSES = 24
_PER_TURN = 4
_SPREAD = 16


class Possible:
    def __init__(self, queries: Queries, most_nodes: int) -> None:
        """Questions with more than `most_nodes` terms are not asked: they are as good as undecided."""
        self._queries = queries
        self._most_nodes = most_nodes
        self.undecided = 0

    def model(self, path: Path, condition: Term, hint: Model | None) -> Model | No | None:
        """A model of the condition and what the path says about it; No if there is none, None if nobody knows."""
        if condition is t.FALSE:
            return No.UNSAT
        base = hint if hint is not None else self._queries.any_input()
        about = path.about([condition])
        if base.value(condition) and all(base.value(term) for term in about):
            return base
        listed = _of_list(condition, about, base)
        if listed is not None:
            return listed
        nodes = t.postorder([condition, *about])
        if len(nodes) > self._most_nodes:
            self.undecided += 1
            return None
        guessed = self._guess([condition, *about], base) if len(nodes) <= _MOST_NODES else None
        if guessed is not None:
            return guessed
        found = self._queries.model(path, (condition,), base)
        if found is No.UNKNOWN:
            self.undecided += 1
            return None
        return found

    def _guess(self, formula: list[Term], base: Model) -> Model | None:
        keys = self._queries.table.of(formula[0])
        variables = sorted((key for key in keys if isinstance(key, t.Term)), key=lambda term: term.serial)
        if len(variables) != len(keys) or len(variables) > _MOST_VARIABLES:
            return None
        if any(variable.op != "var" for variable in variables):
            return None
        nodes = t.postorder(formula[:1])
        for variable, value in islice(_in_turn(nodes, variables), _MOST_GUESSES):
            evaluator = Evaluator(_one_changed(base.values, variable, value), base._byte)
            if all(evaluator.value(term) for term in formula):
                return Model({**base.values, variable: value}, base.memory, base._known, base._otherwise)
        return None


def _of_list(condition: Term, about: list[Term], base: Model) -> Model | None:
    """For one of the ways of a large table: a model in which nothing but the entry is another one."""
    if condition.op != "eq":
        return None
    wanted, read = condition.args if condition.args[0].op == "const" else reversed(condition.args)
    entry = read.args[0] if read.op == "extract" else read
    if wanted.op != "const" or entry.op != "var":
        return None
    low = read.data[1] if read.op == "extract" else 0
    mask = (1 << read.width) - 1
    for conjunct in about:
        listed = listing(conjunct) if conjunct.op == "or" else None
        if listed is None or listed[0] is not entry:
            continue
        value = next((value for value in sorted(listed[1]) if value >> low & mask == wanted.data), None)
        if value is None:
            return None
        evaluator = Evaluator(_one_changed(base.values, entry, value), base._byte)
        if all(evaluator.value(term) for term in about if term is not conjunct):
            return Model({**base.values, entry: value}, base.memory, base._known, base._otherwise)
        return None
    return None


def _one_changed(values: Mapping[Term, int], variable: Term, value: int) -> Callable[[Term], int]:
    return lambda term: value if term is variable else values.get(term, 0)


def _in_turn(nodes: list[Term], variables: list[Term]) -> Iterator[tuple[Term, int]]:
    """A few values of one variable, then of the next, and so on."""
    waiting = deque((variable, _candidates(nodes, variable)) for variable in variables)
    while waiting:
        variable, candidates = waiting.popleft()
        few = list(islice(candidates, _PER_TURN))
        for value in few:
            yield variable, value
        if few:
            waiting.append((variable, candidates))


def _candidates(nodes: list[Term], variable: Term) -> Iterator[int]:
    mask = (1 << variable.width) - 1
    seen: set[int] = set()
    constants = [node.data for node in nodes if node.op == "const"]
    constants += [-node.data[1] for node in nodes if node.op == "lin"]
    constants += [a - b for a in constants[:4] for b in constants[:4]]
    for constant in [0, 1, mask, *constants]:
        for value in (constant, constant + 1, constant - 1):
            if value & mask not in seen:
                seen.add(value & mask)
                yield value & mask
    spread = 0
    for _ in range(_SPREAD):
        spread = spread * 0x5DEECE66D + 0xB39F2A4C1D7E65 & mask
        yield spread
