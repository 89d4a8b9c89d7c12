"""Two values that meet are one, if the path of the one says that the other's value is its own.

The loop that is left over when a compiler has unrolled another begins at n & ~1, or at 0 where n = 1 leaves no turn for
the unrolled one. Both are n & ~1. A variable means the same in both states (`join`), so that every machine state of the
first is one of the joined state, under the same values of the variables. The same the other way round: a term that is a
number by its own path, where the other side is that number. And a choice, where the other's path says which case it is
and that is the other's value: n, but at most 32, where n meets it. Or two terms whose last bits the paths tell: what an
unrolled loop has left to do is n where n is even, and n - 1 where it is odd. Or two terms that are the same number,
each by its own path: what a loop has counted down to its end is 0 after the first turn and after all others.
"""

from __future__ import annotations

from mcveto.engines.memory import Value
from mcveto.engines.path import Path
from mcveto.engines.simulation.choices import all_taken
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

MOST_NODES = 12


def agreed(a: Value, b: Value, first: Path, second: Path) -> Value | None:
    """The term of one side, if the other side is a number and its path says that the term is this number; or the
    number, if the term's own path says so; or the choice of one side, if the other's path makes the other's value of
    it."""
    for number, term, path, own in ((a, b, first, second), (b, a, second, first)):
        if not isinstance(number, int) or isinstance(term, int):
            continue
        if term.op != "var" and _is(term, number, path):
            return term
        if _is(term, number, own):
            return number
    for value, other, path in ((a, b, second), (b, a, first)):
        if isinstance(value, Term) and _is_choice(value) and all_taken(value, path) == other:
            return value
    if isinstance(a, Term) and isinstance(b, Term) and a.width > 1:
        if "lin" in (a.op, b.op):
            same = _number(a, first)
            if same is not None and same == _number(b, second):
                return same
        mine, other = (_with_last_bits(value, path) for value, path in ((a, first), (b, second)))
        if mine is other:
            return mine
    return None


def _with_last_bits(value: Term, path: Path) -> Term:
    """A term in which words and parts of words are twice something, and the last bit that a path says they have."""
    if not t.are_short([value], MOST_NODES):
        return value
    ends: dict[Term, Term] = {}
    for term in t.postorder([value]):
        part = term.args[0] if term.op == "zext" else term
        if part.width == 1 or part.op not in ("var", "extract"):
            continue
        last = t.extract(part, 0, 0)
        for bit, said in ((1, last), (0, t.bnot(last))):
            if path.holds(said):
                rest = t.zext(t.extract(part, part.width - 1, 1), term.width)
                ends[term] = t.add(t.mul(rest, t.const(2, term.width)), t.const(bit, term.width))
    return Substitution(ends).apply(value) if ends else value


def _is_choice(value: Term) -> bool:
    return value.op == "ite" or (value.op == "lin" and any(part.op == "ite" for part in value.args))


def _is(term: Term, number: int, path: Path) -> bool:
    return _number(term, path) == number


def _number(term: Term, path: Path) -> int | None:
    """What a term is, if its path says so: by its bounds, or because two things are equal whose distance it is."""
    said = path.about([term])
    if not said:
        return None
    low, high = bounds_of(term, path)
    if low == high:
        return low
    if term.op != "lin":
        return None
    for conjunct in said:
        if conjunct.op == "eq" and conjunct.args[0].width == term.width:
            for one, other in (conjunct.args, conjunct.args[::-1]):
                rest = t.sub(term, t.sub(one, other))
                if rest.op == "const":
                    return int(rest.data)
    return None
