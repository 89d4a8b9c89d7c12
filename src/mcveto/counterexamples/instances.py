"""States that are instances of one that was explored before.

`engines.subsume` knows states that are alike up to the names of inputs. Here the earlier state may also be more
general: where it holds an input, the later one may hold any term, as long as the path of the later one implies what
the path of the earlier one says about it. So a loop that starts with any number and counts it up comes back to an
earlier state.
"""

from __future__ import annotations

from mcveto.engines.queries import No, Queries
from mcveto.engines.state import PathState
from mcveto.engines.subsume import MAX_TERMS, Covering, Signature, Visited
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term, free_variables

# Earlier states that are looked at, and questions to the solver for each.
_MOST_EARLIER = 16
_MOST_QUESTIONS = 8


class Instances(Visited):
    def __init__(self, queries: Queries, memory: Term) -> None:
        super().__init__(queries, memory)
        self._solver = queries

    def covers(self, state: PathState) -> Covering | None:
        found = super().covers(state)
        if found is not None:
            return found
        described = self._last
        if len(described.values) > MAX_TERMS:
            return None
        for number, item in self._seen.get(described.known, ())[:_MOST_EARLIER]:
            if isinstance(item, Signature):
                bound = matched(item.values, described.values)
                if bound is not None and self._implies(state, item, bound):
                    return Covering(number, ())
        return None

    def _implies(self, state: PathState, earlier: Signature, bound: dict[Term, Term]) -> bool:
        """Whether the path implies what the earlier state's says, its inputs being what they are matched with."""
        rename = Substitution(bound).apply
        asked = 0
        for conjunct in sorted(earlier.conjuncts, key=lambda term: term.serial):
            if any(_is_input(variable) and variable not in bound for variable in free_variables([conjunct])):
                return False
            here = rename(conjunct)
            if here is t.TRUE or state.path.holds(here):
                continue
            asked += 1
            if asked > _MOST_QUESTIONS:
                return False
            if self._solver.model(state.path, (t.bnot(here),), state.model) is not No.UNSAT:
                return False
        return True


def _is_input(variable: Term) -> bool:
    return variable.op == "var" and "!" in str(variable.data)


def matched(patterns: tuple[Term, ...], values: tuple[Term, ...]) -> dict[Term, Term] | None:
    """What the inputs in the patterns stand for, so that they are the values; None if nothing was found."""
    if len(patterns) != len(values):
        return None
    bound: dict[Term, Term] = {}
    seen: set[tuple[Term, Term]] = set()
    # An input by itself, or plus a constant, says what it stands for; so they come first.
    pending = sorted(zip(patterns, values, strict=True), key=lambda pair: _shifted(pair[0]) is not None)
    while pending:
        pattern, value = pending.pop()
        if (pattern, value) in seen:
            continue
        seen.add((pattern, value))
        if pattern.width != value.width:
            return None
        known = _shifted(pattern)
        if known is not None:
            variable, constant = known
            bound.setdefault(variable, t.sub(value, t.const(constant, value.width)))
        elif pattern.op == value.op and pattern.data == value.data and len(pattern.args) == len(value.args):
            pending += zip(pattern.args, value.args, strict=True)
    # Whatever was guessed on the way, this is what counts.
    apply = Substitution(bound).apply
    agree = all(apply(pattern) is value for pattern, value in zip(patterns, values, strict=True))
    return bound if agree else None


def _shifted(term: Term) -> tuple[Term, int] | None:
    """The input and the constant of which the term is the sum."""
    if _is_input(term):
        return term, 0
    if term.op == "lin" and len(term.args) == 1 and term.data[0] == (1,) and _is_input(term.args[0]):
        return term.args[0], int(term.data[1])
    return None
