"""Two values that depend on the same condition, once both are said in terms of variables that stand for other pairs.

One state has the index of a device in a variable i, and its lock is held if i = 0; the other has read it as a bit of an
input, and the lock is held if the bit is not set. The joined state has a variable n for the two indices: what was i in
the first state, and the bit, as a number, in the second. Said of n, the lock is held if n = 0 in both. And if how it
was taken is `i = 0 ? 1 : before` here and `bit ? 0 : 1` there, it is `n = 0 ? 1 : m`, where m stands for what differs
(Shannon's expansion). What tells the two states apart is found in the same way.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import Value
from mcveto.engines.simulation.gate import MOST_GATE, gate_of
from mcveto.engines.simulation.meeting import Meeting
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term


class Split(NamedTuple):
    condition: Term
    if_true: tuple[Value, Value]
    if_false: tuple[Value, Value]


class InTermsOfPairs:
    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting
        self._names: tuple[dict[Term, Term], dict[Term, Term]] = ({}, {})
        self._meant: tuple[dict[Term, Term], dict[Term, Term]] = ({}, {})
        self._known = (0, 0)
        self._gate: list[Term | None] | None = None

    def split(self, a: Value, b: Value) -> Split | None:
        """A condition that decides both values, and what they are if it holds and if it does not."""
        if isinstance(a, int) or isinstance(b, int) or not t.are_short([a, b], MOST_GATE):
            return None
        sides = a, b
        for index, side in enumerate(sides):
            decides = _condition(side)
            if decides is None:
                continue
            self._learn()
            condition = Substitution(self._names[index]).apply(decides)
            meant = Substitution(self._meant[1 - index]).apply(condition)
            conditions = (decides, meant) if index == 0 else (meant, decides)
            if_true, if_false = ([*map(_given, sides, conditions, (value, value))] for value in (t.TRUE, t.FALSE))
            if all(case[i] is not sides[i] for case in (if_true, if_false) for i in (0, 1)):
                one, other = ((as_value(case[0]), as_value(case[1])) for case in (if_true, if_false))
                return Split(condition, one, other)
        return None

    def gate(self) -> Term | None:
        """A short condition that the first path says and the second denies."""
        if self._gate is None:
            meeting = self._meeting
            self._learn()
            said = [
                [term for term in path.terms if t.are_short([term], MOST_GATE)]
                for path in (meeting.first.path, meeting.second.path)
            ]
            sides = [Substitution(names).apply_all(terms) for names, terms in zip(self._names, said, strict=True)]
            self._gate = [gate_of(*sides)]
        return self._gate[0]

    def _learn(self) -> None:
        pairs, indices = self._meeting.pairs, self._meeting.indices
        if self._known == (len(pairs), len(indices)):
            return
        latest = [(new, a, b) for (_, a, b), new in islice(pairs.items(), self._known[0], None)]
        latest += indices[self._known[1] :]
        self._known = len(pairs), len(indices)
        for new, *sides in latest:
            for names, meant, side in zip(self._names, self._meant, sides, strict=True):
                meant[new] = as_term(side, new.width)
                if isinstance(side, Term):
                    names.update(new_names(side, new))


def _condition(value: Term) -> Term | None:
    """What a choice is decided by first."""
    if value.op == "ite":
        return value.args[0]
    return value.args[0] if value.op == "zext" and value.args[0].width == 1 else None


def _given(value: Term, condition: Term, is_so: Term) -> Term:
    """What a value is where a condition holds, or does not."""
    if condition.op == "const":
        return value
    return Substitution({condition: is_so, t.bnot(condition): t.bnot(is_so)}).apply(value)


def new_names(value: Term, new: Term) -> dict[Term, Term]:
    """What is said of a variable, a condition or its opposite, or a bit as a number, said of what stands for it."""
    if value.op == "var":
        return {value: new}
    if value.width == 1 and value.op != "const":
        return {value: new, t.bnot(value): t.bnot(new)}
    if value.op == "zext" and value.args[0].width == 1:
        bit, is_zero = value.args[0], t.eq(new, t.const(0, new.width))
        return {value: new, bit: t.bnot(is_zero), t.bnot(bit): is_zero}
    return {}
