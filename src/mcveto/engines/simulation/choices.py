"""Values that are one of a few constants, depending on conditions: the flags of a driver.

A store of such a value to one of a few places that hold such values makes each of them a choice: the new value if the
address is this place, else the old one. So a lock of an array that is taken and given back through the same index is
free again whatever the index is, and the other locks are as they were. What holds more than a few values is forgotten
instead: its terms would grow with every store, and joins would give them new names all the same.
"""

from __future__ import annotations

from mcveto.engines.memory import Value
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MOST_NODES = 80
MOST_CHOICES = 8
MOST_PLACES = 16


def is_choice(value: Value) -> bool:
    """Whether a value is a constant, or one of a few, depending on conditions."""
    if isinstance(value, int):
        return True
    bit = value.args[0] if value.op == "lin" and len(value.args) == 1 else value
    if bit.op == "zext" and bit.args[0].width == 1:
        return len(t.postorder([value])) <= MOST_NODES
    pending = [value]
    for _ in range(2 * MOST_CHOICES):
        if not pending:
            return len(t.postorder([value])) <= MOST_NODES
        part = pending.pop()
        if part.op == "ite":
            pending += part.args[1:]
        elif part.op != "const":
            return False
    return False


def renaming(a: Term, b: Term) -> dict[Term, Term] | None:
    """The variables that, put in place of those of the first term, make the second of it; None if there are none."""
    names: dict[Term, Term] = {}
    seen: set[tuple[Term, Term]] = set()
    pending = [(a, b)]
    while pending:
        pair = one, other = pending.pop()
        if pair in seen:
            continue
        seen.add(pair)
        if one.op == "var" and other.op == "var":
            if one.width != other.width or names.setdefault(one, other) is not other:
                return None
        elif one is not other and (one.op, one.data, one.width, len(one.args)) != (
            other.op,
            other.data,
            other.width,
            len(other.args),
        ):
            return None
        else:
            # Also where both are the same: a variable that occurs there must stand for itself.
            pending += zip(one.args, other.args, strict=True)
    return names
