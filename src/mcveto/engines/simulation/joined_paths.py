"""What a joined state still says: what both paths say, and "one or the other" for what they decided differently.

What both say is kept, also about values that got a new name; of what only the earlier turn of a loop says, what holds
of the later one. What two ways decided differently is kept as alternatives, as long as they are short (Das, Lerner,
Seigle, "ESP: path-sensitive program verification in polynomial time", PLDI 2002, keeps only what both say). Conjuncts
about variables that no register and no cell mentions any longer are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from functools import partial
from itertools import islice, product

from mcveto.engines.domain import as_term
from mcveto.engines.memory import Value
from mcveto.engines.simulation.choices import MOST_NODES, is_choice
from mcveto.engines.simulation.coarse_memory import CoarseMemory
from mcveto.engines.simulation.exit_tests import LAST_ERROR
from mcveto.engines.simulation.in_terms_of_pairs import new_names
from mcveto.engines.simulation.meeting import FLAG, Meeting, Setting
from mcveto.engines.simulation.turns import wider_bounds
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

MOST_FLAGS = 3
LONGEST_RENAMED = 256
# New names that one variable has got, in one conjunct.
MOST_READINGS = 4


class JoinedPaths:
    def __init__(self, setting: Setting) -> None:
        self._table = setting.table
        self._turns = setting.turns
        self._covering = setting.covering
        self._unknowns = setting.unknowns
        self._definitions = setting.executor.remainders.definitions
        self._long: dict[Term, bool] = {}

    def conjuncts(self, meeting: Meeting, live: frozenset[object]) -> list[Term]:
        """`live`: what the joined state still holds."""
        first = self._decided(meeting.first.path.terms, live)
        second = self._decided(meeting.second.path.terms, live)
        names_first = _named((a, new) for (_, a, _), new in meeting.pairs.items())
        names_second = _named((b, new) for (_, _, b), new in meeting.pairs.items())
        common = dict.fromkeys(second)
        shared = [term for term in first if term in common]
        result = [kept for term in shared for kept in self._kept(term, live)]
        known = set(shared)
        rest_first = [term for term in first if term not in common]
        rest_second = [term for term in second if term not in known]
        # "a or b", and b where a branch has decided that since.
        by_parts = [*_said_by_parts(rest_first, {*second}), *_said_by_parts(rest_second, {*first})]
        if by_parts:
            result += [kept for term in by_parts for kept in self._kept(term, live)]
            known.update(by_parts)
            rest_first = [term for term in rest_first if term not in known]
            rest_second = [term for term in rest_second if term not in known]
        if names_first and names_second:
            renamed = {*self._renamed(meeting, second, names_second)}
            mine = self._renamed(meeting, first, names_first)
            result += [new for new in mine if new in renamed and self._is_live(new, live)]
        sides = [(rest_first, names_first, 1), (rest_second, names_second, 0)]
        result += [new for rest, names, other in sides for new in self._linked(meeting, rest, names, other, live)]
        if meeting.is_loop:
            result += self._kept_bounds(meeting, first, live)
        else:
            bounds = self._bounds_of_one_side(meeting, rest_first, rest_second, live)
            rest_first, rest_second = (
                [term for term in rest if term not in bounds] for rest in (rest_first, rest_second)
            )
            result += [*bounds, *self._alternatives(meeting, rest_first, rest_second, live)]
        self._unknowns.bounds.update(meeting.bounds)
        return list(dict.fromkeys([*result, *meeting.bounds]))

    def _decided(self, terms: list[Term], live: frozenset[object]) -> list[Term]:
        """A path in which variables that will be forgotten are what it says they are: of alternatives, those are left
        that agree with the result that was tested (a call failed, or it did not)."""
        known: dict[Term, Term] = {}
        for term in terms:
            if term.op == "eq":
                value, variable = term.args if term.args[0].op == "const" else reversed(term.args)
                if value.op == "const" and variable.op == "var" and variable not in live:
                    known[variable] = value
        if not known or not any(term.op == "or" for term in terms):
            return terms
        apply, names, table = Substitution(known).apply, known.keys(), self._table
        return [apply(term) if term.op == "or" and not table.of(term).isdisjoint(names) else term for term in terms]

    def _is_live(self, term: Term, live: frozenset[object]) -> bool:
        return self._table.of(term) <= live

    def _kept(self, term: Term, live: frozenset[object]) -> list[Term]:
        """A conjunct, or what is left of its alternatives when dead variables are left out."""
        if self._is_live(term, live):
            return [term]
        if term.op != "or" or term.width != 1:
            return []
        either: list[Term] = []
        for way in term.args:
            parts = [part for part in (way.args if way.op == "and" else (way,)) if self._is_live(part, live)]
            if not parts:
                return []
            either.append(t.conj(parts))
        return [t.disj(either)]

    def _renamed(self, meeting: Meeting, terms: list[Term], names: dict[Term, Term]) -> list[Term]:
        """The terms under new names; most speak of nothing that has one, and some of those are long. Long ones about
        what only registers hold (where hundreds of handlers are, when one of them has returned) are left out."""
        table = self._table
        keys = {key for value in names for key in table.of(value)}
        lost = {value for value, new in names.items() if not meeting.made.get(new, 1)}
        apply = Substitution(names).apply
        result = []
        for term in terms:
            said = table.of(term)
            if said.isdisjoint(keys):
                result.append(term)
            elif not (said <= lost and self._is_long(term)):
                result.append(apply(term))
        return result

    def _linked(
        self, meeting: Meeting, terms: list[Term], names: dict[Term, Term], other: int, live: frozenset[object]
    ) -> Iterator[Term]:
        """Alternatives that link values which got new names, and that the other state's values satisfy as they are: a
        flag and the outcome of a comparison with it, which compilers keep in registers side by side."""
        alternatives = [term for term in terms if term.op == "or" and not self._table.of(term).isdisjoint(names)]
        if not alternatives or not names:
            return
        sides = {new: as_term((a, b)[other], bits) for (bits, a, b), new in meeting.pairs.items()}
        rename, put_in = Substitution(names).apply, Substitution(sides).apply
        path = (meeting.first.path, meeting.second.path)[other]
        for term in alternatives:
            if self._is_long(term):
                continue
            new = rename(term)
            if new is not term and self._is_live(new, live):
                told = put_in(new)
                if told is t.TRUE or path.holds(told):
                    yield new

    def _is_long(self, term: Term) -> bool:
        found = self._long.get(term)
        if found is None:
            found = self._long[term] = not t.are_short([term], LONGEST_RENAMED)
        return found

    def _kept_bounds(self, meeting: Meeting, told_before: list[Term], live: frozenset[object]) -> list[Term]:
        """What the earlier state said about a variable that got a new name, if it holds of the later one's value."""
        result = []
        # A turn may be that of a counter and, at another place, part of a value that is something else now.
        values: dict[Term, list[tuple[Term, Term]]] = {}
        for (bits, a, b), new in meeting.pairs.items():
            if isinstance(a, Term):
                values.setdefault(a, []).append((as_term(b, bits), new))
        for term in told_before:
            found = [key for key in self._table.of(term) if isinstance(key, Term) and key in values]
            changed = sorted(found, key=lambda key: key.serial) if len(found) > 1 else found
            # What a cell held in an earlier turn may be what a counter began with: it is still the same.
            turns = [key for key in changed if key in self._turns]
            if not turns and len(changed) != 1:
                continue
            keys = turns or changed
            for each in islice(product(*(values[key] for key in keys)), MOST_READINGS):
                bound = self._kept_bound(meeting, term, turns, dict(zip(keys, each, strict=True)))
                if bound is not None and self._is_live(bound, live):
                    result.append(bound)
        return result

    def _kept_bound(
        self, meeting: Meeting, term: Term, turns: list[Term], values: dict[Term, tuple[Term, Term]]
    ) -> Term | None:
        """What is left of a bound where variables have these values now, and new names."""
        now = Substitution({key: value for key, (value, _) in values.items()})
        # A guess that was too close comes to rest at one of the numbers behind it.
        ends = {number for turn in turns for number in meeting.setting.turns.ends.get(turn, ())}
        if any(meeting.may_end(new, key, value) for key, (value, new) in values.items()):
            ends.update(meeting.numbers)
        wider = wider_bounds(term, ends) if meeting.guesses else ()
        implied = self._covering.implied
        held = next((bound for bound in (term, *wider) if implied(meeting.second, now.apply(bound))), None)
        return None if held is None else Substitution({key: new for key, (_, new) in values.items()}).apply(held)

    def _bounds_of_one_side(
        self, meeting: Meeting, first: list[Term], second: list[Term], live: frozenset[object]
    ) -> dict[Term, None]:
        """Upper bounds of variables that only one of the two states mentions, and the joined one in a choice between
        both: whatever they are in the other, 0 will do. Not so with what is defined by others, as remainders are, or by
        the call that is followed; but what that said at its entry is true in both."""
        activation = meeting.setting.executor.activation
        said = activation.general.said if activation is not None else ()
        found = {
            term: None for term in (*first, *second) if _is_upper_bound(term) and term in said and term.args[0] in live
        }
        sides = ((first, meeting.second, 0), (second, meeting.first, 1))
        for terms, other, side in sides:
            bounded = [term for term in terms if _is_upper_bound(term) and self._is_only_a_name(term.args[0], live)]
            mentioned = self._mentioned(other) if bounded else set()
            for term in bounded:
                variable = term.args[0]
                if variable not in mentioned:
                    found[term] = None
                    meeting.indices.append((variable, *((variable, 0) if side == 0 else (0, variable))))
        return found

    def _is_only_a_name(self, variable: Term, live: frozenset[object]) -> bool:
        """Whether the joined state still mentions a variable, which a join has made."""
        return variable in live and variable in self._unknowns.origins

    def _mentioned(self, state: PathState) -> set[object]:
        """The variables that a state speaks of: also those whose remainders it does."""
        memory = state.memory
        assert isinstance(memory, CoarseMemory)
        pending = [value for value in state.registers.values() if isinstance(value, Term)]
        pending += [*memory.words(), *state.path.terms]
        found: set[object] = set()
        while pending:
            new = self._table.of(pending.pop()) - found
            found |= new
            pending += [self._definitions[key][0] for key in new if key in self._definitions]
        return found

    def _alternatives(
        self, meeting: Meeting, first: list[Term], second: list[Term], live: frozenset[object]
    ) -> list[Term]:
        one = [kept for term in first for kept in self._kept(term, live)]
        two = [kept for term in second for kept in self._kept(term, live)]
        if not one and not two:
            return []
        # A side that says nothing may be anything: only what the other says is connected with its flags.
        if len(one) == 1 and two:
            two = [term for term in two if term is not t.bnot(one[0])] or [t.bnot(one[0])]
        elif len(two) == 1 and one:
            one = [term for term in one if term is not t.bnot(two[0])] or [t.bnot(two[0])]
        if len(one) > 8 or len(two) > 8:
            return []
        told = self._told(meeting, live)
        clauses = _clauses([*one, *(a for a, _ in told)], [*two, *(b for _, b in told)])
        if clauses:
            return clauses
        left, right = t.conj(one), t.conj(two)
        if told:
            # What was decided remains connected with the flags that remember it.
            left, right = t.conj([left, *(a for a, _ in told)]), t.conj([right, *(b for _, b in told)])
        elif left is t.bnot(right):
            return []
        either = t.disj([left, right])
        return [either] if either is not t.TRUE and t.are_short([either], MOST_NODES) else []

    def _told(self, meeting: Meeting, live: frozenset[object]) -> list[tuple[Term, Term]]:
        """For the few variables that stand for a flag: which value each of the two states gave it."""
        found: list[tuple[Term, Term]] = []
        for (bits, a, b), new in meeting.pairs.items():
            sides = [as_term(a, bits), as_term(b, bits)]
            if any(map(_is_code, sides)) and all(_is_code(side) or self._is_flag(side, live) for side in sides):
                found.append((t.eq(new, sides[0]), t.eq(new, sides[1])))
        return found if len(found) <= MOST_FLAGS else []

    def _is_flag(self, side: Term, live: frozenset[object]) -> bool:
        """Whether a value is a variable, or a choice by conditions, of which something is still known."""
        return side in live if side.op == "var" else is_choice(side) and self._is_live(side, live)


def _clauses(one: list[Term], two: list[Term]) -> list[Term]:
    """What two ways say that a condition tells apart, as "not the condition, or what the one says" and so on: all that
    is known, in pieces that are recognised when more ways meet."""
    condition = next((term for term in one if t.bnot(term) in two), None)
    if condition is None:
        return []
    opposite = t.bnot(condition)
    found = [t.disj([opposite, term]) for term in one if term is not condition]
    found += [t.disj([condition, term]) for term in two if term is not opposite]
    return [term for term in found if term is not t.TRUE and t.are_short([term], MOST_NODES)]


def _said_by_parts(terms: list[Term], others: Set[Term]) -> list[Term]:
    """Of conditions with alternatives, those of which the others say one."""
    return [term for term in terms if term.op == "or" and any(map(partial(_is_said, others), term.args))]


def _is_said(others: Set[Term], way: Term) -> bool:
    return way in others or (way.op == "and" and all(part in others for part in way.args))


def _named(pairs: Iterable[tuple[Value, Term]]) -> dict[Term, Term]:
    """The new names of what paths speak of."""
    names: dict[Term, Term] = {}
    for value, new in pairs:
        if isinstance(value, Term):
            names.update(new_names(value, new))
    return names


def _is_upper_bound(term: Term) -> bool:
    return term.op == "ult" and term.args[0].op == "var" and term.args[1].op == "const"


def _is_code(value: Term) -> bool:
    """Whether a value is a flag or, being small and negative, the number of an error."""
    return value.op == "const" and (value.data < FLAG or (1 << value.width) - value.data <= LAST_ERROR)
