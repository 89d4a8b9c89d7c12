"""What is asked of an entry of a table, said of its index.

A switch jumps to what a table holds at an index that was compared with the number of cases. "The entry is the address
of the third case" is a predicate about memory at an address that is not known; of the index it says "the index is 2",
which other code decides without a solver. The entries are those of memory that no run can change.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace

MAX_INDEX = 255
# Values of the index that one condition may stand for.
MAX_VALUES = 4


def about_index(condition: Term, greatest_of: Mapping[Term, int], space: AddressSpace) -> list[Term] | None:
    """The values of the index under which the condition holds, as equations, or, where they are too many, none; None if
    the condition is not about one entry of such a table."""
    order = t.postorder([condition])
    loads = [term for term in order if term.op == "load" and term.args[1].op != "const"]
    if len(loads) != 1 or loads[0].args[0].op != "memory":
        return None
    (entry,) = loads
    size, is_big_endian = entry.data[:2]
    inside = set(t.postorder([entry.args[1]]))
    for index, greatest in greatest_of.items():
        if index not in inside or greatest > MAX_INDEX:
            continue
        values: list[Term] = []
        for number in range(greatest + 1):
            at = t.const(number, index.width)
            where = substitute(entry.args[1], {index: at})
            content = space.fixed_bytes(where.data, size) if where.op == "const" else None
            if content is None:
                return None
            there = t.const(int.from_bytes(content, "big" if is_big_endian else "little"), entry.width)
            holds = substitute(condition, {entry: there})
            if holds is t.TRUE:
                values.append(t.eq(index, at))
            elif holds is not t.FALSE:
                return None
        return values if len(values) <= MAX_VALUES else []
    return None
