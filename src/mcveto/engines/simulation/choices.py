"""Values that are one of a few constants, depending on conditions: the flags of a driver.

A store of such a value to one of a few places that hold such values makes each of them a choice: the new value if the
address is this place, else the old one. So a lock of an array that is taken and given back through the same index is
free again whatever the index is, and the other locks are as they were. What holds more than a few values is forgotten
instead: its terms would grow with every store, and joins would give them new names all the same.
"""

from __future__ import annotations

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import Value
from mcveto.engines.path import Path
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

MOST_NODES = 120
MOST_CHOICES = 8
MOST_PLACES = 64


def is_choice(value: Value) -> bool:
    """Whether a value is a constant, or one of a few, depending on conditions."""
    if isinstance(value, int):
        return True
    bit = value.args[0] if value.op == "lin" and len(value.args) == 1 else value
    if bit.op == "zext" and bit.args[0].width == 1:
        return t.are_short([value], MOST_NODES)
    pending = [value]
    for _ in range(2 * MOST_CHOICES):
        if not pending:
            return t.are_short([value], MOST_NODES)
        part = pending.pop()
        if part.op == "ite":
            pending += part.args[1:]
        elif part.op != "const":
            return False
    return False


def are_of_one_flag(a: Value, b: Value) -> bool:
    """Whether two values are choices between constants and what was there before: the flag of one of several devices
    that two ways have set differently, or only one of them."""
    ways = [_ways(value) for value in (a, b)]
    return ways[0] is not None and bool(ways[0]) and ways[0] == ways[1] and "ite" in (_op(a), _op(b))


def are_ways(a: Value, b: Value) -> bool:
    """Whether two values are choices between constants and variables, or one of these."""
    return _ways(a) is not None and _ways(b) is not None


def _op(value: Value) -> str:
    return "const" if isinstance(value, int) else value.op


def _ways(value: Value) -> set[Term] | None:
    """The variables among the ways of a choice; None if it has too many, or something else among them."""
    if isinstance(value, int):
        return set()
    pending = [value]
    found: set[Term] = set()
    for _ in range(2 * MOST_CHOICES):
        if not pending:
            return found if t.are_short([value], MOST_NODES) else None
        part = pending.pop()
        if part.op == "ite":
            pending += part.args[1:]
        elif part.op == "var":
            found.add(part)
        elif part.op != "const":
            return None
    return None


def renaming(a: Term, b: Term, with_bits: bool = False) -> dict[Term, Term] | None:
    """What makes the second term of the first, put in place of its variables and, if so wanted, of its conditions; None
    if they have not the same form."""
    names: dict[Term, Term] = {}

    def match(one: Term, other: Term) -> bool:
        if one is other or one in names:
            return names.get(one, one) is other
        if one.width != other.width or one.op == "const":
            return False
        if with_bits and one.op == "not":
            # A condition and its opposite have one name.
            return match(one.args[0], t.bnot(other))
        if one.args and (one.op, one.data, len(one.args)) == (other.op, other.data, len(other.args)):
            before = dict(names)
            if all(match(*pair) for pair in zip(one.args, other.args, strict=True)):
                return True
            names.clear()
            names.update(before)
        if (one.op, other.op) != ("var", "var") and not (with_bits and one.width == 1):
            return False
        names[one] = other
        return True

    if not match(a, b):
        return None
    # What was the same in one place may have got a partner in another.
    return names if Substitution(names).apply(a) is b else None


def taken(value: Value, path: Path) -> Value:
    """A choice, as what was chosen if the path says which."""
    while isinstance(value, Term) and value.op == "ite":
        condition, first, second = value.args
        if path.holds(condition):
            value = as_value(first)
        elif path.holds(t.bnot(condition)):
            value = as_value(second)
        else:
            break
    return value


def all_taken(value: Value, path: Path) -> Value:
    """A value in which every choice is what was chosen, if the path says which: also one that is part of a row."""
    value = taken(value, path)
    if isinstance(value, int) or value.op == "var":
        return value
    terms = t.postorder([value])
    if len(terms) > MOST_NODES:
        return value
    chosen: dict[Term, Term] = {}
    for term in terms:
        if term.op == "ite":
            way = as_term(taken(term, path), term.width)
            if way is not term:
                chosen[term] = Substitution(chosen).apply(way)
    return as_value(Substitution(chosen).apply(value)) if chosen else value


def first_condition(value: Value) -> Term | None:
    """What has to be decided first to know what a choice between numbers is; None if it is a number, or no choice."""
    while isinstance(value, Term):
        if value.width == 1:
            return value
        if value.op == "ite":
            return value.args[0]
        if value.op not in ("zext", "concat"):
            return None
        value = next(part for part in value.args if part.op != "const")
    return None


def settled(value: Value, path: Path) -> Value:
    """A flag, as a number if the path says which one it is."""
    if isinstance(value, int):
        return value
    bit = value.args[0] if value.op == "lin" and len(value.args) == 1 else value
    if bit.op != "zext" or bit.args[0].width != 1:
        return value
    condition = bit.args[0]
    for is_set in (condition, t.bnot(condition)):
        if _is_said(is_set, path):
            return as_value(Substitution({condition: t.TRUE if is_set is condition else t.FALSE}).apply(value))
    return value


def _is_said(condition: Term, path: Path) -> bool:
    if path.holds(condition):
        return True
    if condition.op == "and":
        return all(map(path.holds, condition.args))
    return condition.op == "or" and any(map(path.holds, condition.args))
