"""Candidate claims about single arguments: f(7) = 13. A recursion over small numbers is computed as a table.

Where no formula in the arguments fits (Fibonacci, Hanoi's towers, the fast rows of Ackermann's function), the values
themselves are the claim, one for each argument that matters: "argument 7 returns 13". Their number is small where runs
of the program would be exponentially long, because what a path needs of the activations within it is looked up, not
executed (tabulation: Michie, "Memo functions and machine learning", Nature 1968; in logic programs, Tamaki and Sato,
ICLP 1986). Arguments of which a claim already says the result, such as "m = 2 returns 2n + 3", are not followed.

A result that something is only added to (see `sums`) has rows that say how much besides.

The arguments asked for are those that activations began with in runs, and those that these ask for. The rows are
candidates like all others: whatever they forget (memory that matters, too), Houdini finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mcveto.dpg.summaries.paths import Call, End, Path
from mcveto.dpg.summaries.samples import Sample
from mcveto.dpg.summaries.state import Names
from mcveto.dpg.summaries.summary import Summary, ensured_by
from mcveto.dpg.summaries.sums import Known, behind, whole
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution, substitute
from mcveto.logic.terms import Term

MAX_ROWS = 160
MAX_EVALUATIONS = 4000

Arguments = tuple[int, ...]
Key = tuple[int, Arguments]
Results = dict[Term, int]
"""By result: the value, or what is added to `Signature.sums`."""


@dataclass
class Signature:
    """What a table of a procedure is indexed by and what it lists: places at the beginning, and places behind it."""

    arguments: Sequence[Term]
    results: Sequence[Term]
    fixed: Mapping[Term, int] = field(default_factory=dict)
    """Places that were the same in all runs; with sums also the stack pointer, as in one of them."""
    sums: Mapping[Term, Term] = field(default_factory=dict)
    """What is added to results besides what the arguments decide: a sum of places at the beginning."""

    def key(self, sample: Sample) -> Arguments | None:
        values = [sample.value(place) for place in self.arguments]
        return tuple(value for value in values if value is not None) if None not in values else None


class _Missing(Exception):
    """A row that another one needs is not known yet."""

    def __init__(self, key: Key) -> None:
        super().__init__(str(key))
        self.key = key


class _Open(Exception):
    """A value that is not determined by the arguments."""


class Tables:
    def __init__(
        self,
        names: Names,
        paths: Mapping[int | None, Sequence[Path]],
        summaries: Mapping[int, Summary],
        signatures: Mapping[int, Signature],
    ) -> None:
        self._names = names
        self._signatures = signatures
        self._summaries = summaries
        self._returning = {
            pc: [path for path in found if path.end is End.RETURN] for pc, found in paths.items() if pc is not None
        }
        self.rows: dict[Key, Results] = {}
        self._hopeless: set[Key] = set()
        self._evaluations = 0

    def fill(self, wanted: Iterable[Key]) -> None:
        """Computes the rows that are wanted and those that they need, as far as that is possible."""
        for first in wanted:
            waiting = [first]
            while waiting and self._may_go_on():
                key = waiting[-1]
                if key in self.rows or key in self._hopeless:
                    waiting.pop()
                    continue
                try:
                    self.rows[key] = self._row(key)
                except _Missing as missing:
                    if missing.key in waiting or missing.key in self._hopeless:
                        self._hopeless.add(key)  # needs itself: it does not return
                    else:
                        waiting.append(missing.key)
                except _Open:
                    self._hopeless.add(key)

    def _may_go_on(self) -> bool:
        self._evaluations += 1
        return len(self.rows) < MAX_ROWS and self._evaluations < MAX_EVALUATIONS

    def claims(self, procedure: int) -> list[Term]:
        """The rows of a procedure as claims about its activations."""
        signature = self._signatures[procedure]
        found: list[Term] = []
        for (pc, arguments), results in sorted(self.rows.items(), key=lambda item: item[0]):
            if pc == procedure:
                same = [
                    t.eq(place, t.const(value, place.width))
                    for place, value in zip(signature.arguments, arguments, strict=True)
                ]
                for place, amount in results.items():
                    value = _total(signature.sums.get(place), amount, place)
                    ends = dict.fromkeys(((place, value), whole(place, value)))
                    found += [t.implies(t.conj(same), t.eq(one, other)) for one, other in ends]
        return found

    def _row(self, key: Key) -> Results:
        pc, arguments = key
        signature = self._signatures[pc]
        start = {place: t.const(value, place.width) for place, value in signature.fixed.items()}
        start |= {
            place: t.const(value, place.width) for place, value in zip(signature.arguments, arguments, strict=True)
        }
        # A word in the stack also goes by the number that its address is then.
        where = Substitution({place: value for place, value in start.items() if place.op == "var"})
        start |= {where.apply(place): value for place, value in start.items() if place.op == "load"}
        found: Results | None = None
        for path in self._returning[pc]:
            known = self._taken(path, start)
            if known is None:
                continue
            ends = zip(signature.results, ensured_by(path, signature.results), strict=True)
            results = {place: _amount(known.of(end), signature.sums.get(place)) for place, end in ends}
            if found is not None and found != results:
                raise _Open
            found = results
        if found is None:
            raise _Open
        return found

    def _taken(self, path: Path, start: Mapping[Term, Term]) -> Known | None:
        """What is known along a path from these arguments; None if the path is not taken."""
        known = Known(start)
        if _excluded(path, known):
            return None
        for number, call in enumerate(path.calls):
            more = {
                behind(number, place): value
                for result, amount in self._returned(call, known).items()
                for place, value in (whole(result, self._value(call, known, result, amount)),)
            }
            known = Known({**known.mapping, **more})
            if _excluded(path, known):
                return None
        return known

    def _value(self, call: Call, known: Known, result: Term, amount: int) -> Term:
        place = self._signatures[call.procedure].sums.get(result)
        return _total(None if place is None else known.of(call.before.value(place)), amount, result)

    def _returned(self, call: Call, known: Known) -> Results:
        """The results of an activation within a path, by its claims or by its row."""
        signature = self._signatures[call.procedure]
        values = [known.of(value) for value in call.before.values(signature.arguments)]
        key = (call.procedure, tuple(map(_number, values)))
        row = self.rows.get(key)
        if row is None and not signature.sums:
            row = self._claimed(call.procedure, dict(zip(signature.arguments, values, strict=True)))
        if row is None:
            raise _Missing(key)
        return row

    def _claimed(self, procedure: int, arguments: Mapping[Term, Term]) -> Results | None:
        """The results that claims made before determine for some arguments."""
        found: Results = {}
        for claim in self._summaries[procedure].ensures:
            said = substitute(claim, arguments)
            if said.op == "eq":
                one, other = said.args if said.args[1].op == "const" else said.args[::-1]
                if other.op == "const" and one in self._signatures[procedure].results:
                    found[one] = other.data
        return found if found.keys() >= set(self._signatures[procedure].results) else None


def _total(place: Term | None, amount: int, result: Term) -> Term:
    number = t.const(amount, result.width)
    return number if place is None else t.add(place, number)


def _excluded(path: Path, known: Known) -> bool:
    return any(known.of(literal) is t.FALSE for literal in path.guard)


def _amount(term: Term, place: Term | None) -> int:
    """What is added to a place, or the number that a term is."""
    return _number(term if place is None else t.sub(term, place))


def _number(term: Term) -> int:
    if term.op != "const":
        raise _Open
    return int(term.data)
