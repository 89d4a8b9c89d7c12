"""The term node and its table.

Terms are hash-consed: building the same operator over the same arguments gives the same object, so equality
is identity and a formula is a DAG. The table holds its terms strongly. A weak table was rejected for two
reasons: a term that dies and is built again would get another `serial`, so that the order of arguments (and
with it every printed formula and every solver query) would depend on when garbage was collected; and a weak
lookup costs three times a plain one in the hottest function there is. `serial` counts the terms that were made,
hence it is the same in every run. A long search gives back what nobody holds any more with `sweep`, at points
that depend on what it has built alone.

Widths are in bits. Width 1 is the Boolean sort. Memories (byte-addressed arrays) have width 0 and an
address width.

Operators as they occur in finished terms (everything else is rewritten into these when built): const var
memory | lin (data: coefficients, constant) mul udiv urem sdiv srem shl lshr ashr | and or xor (width > 1:
binary; width 1: n-ary and/or) not (width 1) | eq ult ule slt sle carry scarry sborrow | popcount lzcount |
ite | extract (data: hi, lo) concat (n-ary, most significant first) zext sext | load (data: bytes,
big_endian) store (data: big_endian).
"""

from __future__ import annotations

import sys
from itertools import count
from typing import Any, Final

Data = Any  # int, str, or a nested tuple of ints and bools, depending on the operator


class WidthError(ValueError):
    """Operands whose widths do not fit the operator: always a bug of the caller."""


class Term:
    """One node of the DAG; never built directly, see `mcveto.logic.terms`."""

    __slots__ = ("address_width", "args", "data", "op", "serial", "width")

    def __init__(
        self, op: str, args: tuple[Term, ...], width: int, data: Data, serial: int, address_width: int
    ) -> None:
        self.op: Final = op
        self.args: Final = args
        self.width: Final = width
        self.data: Final = data
        self.serial: Final = serial
        self.address_width: Final = address_width

    def __repr__(self) -> str:
        from mcveto.logic.infix import pretty

        return pretty(self)

    def __copy__(self) -> Term:
        return self

    def __deepcopy__(self, memo: object) -> Term:
        return self

    def __reduce__(self) -> str:
        raise TypeError("terms live in one process; use mcveto.logic.wire to move them")


_table: dict[tuple[str, tuple[Term, ...], int, Data], Term] = {}
_serials = count()


def intern(op: str, args: tuple[Term, ...], width: int, data: Data = None, address_width: int = 0) -> Term:
    """The one node with these components. No simplification and no checks: for constructors only."""
    key = (op, args, width, data)
    found = _table.get(key)
    if found is None:
        found = _table[key] = Term(op, args, width, data, next(_serials), address_width)
    return found


def table_size() -> int:
    """How many distinct terms there are."""
    return len(_table)


def sweep() -> int:
    """Gives back the terms that only the table holds, and what only those hold; how many.

    From the newest to the oldest, because a term is newer than its arguments. A term that somebody holds stays the one
    node with its components; one that is built again is newer than it was."""
    before, keys = len(_table), list(_table)
    references, unheld = sys.getrefcount, _references_if_unheld()
    term = None
    while keys:
        key = keys.pop()
        term = _table[key]
        if references(term) == unheld:
            del _table[key]
    del term
    return before - len(_table)


def _references_if_unheld() -> int:
    """What is counted of what only a table holds and the variable that it is looked at in: by the version of Python."""
    table = {0: object()}
    thing = table[0]
    return sys.getrefcount(thing)


def const(value: int, width: int) -> Term:
    """The bit-vector constant `value` modulo 2^width."""
    value &= (1 << width) - 1
    key = ("const", (), width, value)
    found = _table.get(key)
    if found is None:
        if width < 1:
            raise WidthError(f"a constant needs a positive width, not {width}")
        found = _table[key] = Term("const", (), width, value, next(_serials), 0)
    return found


def var(name: str, width: int) -> Term:
    """A free bit-vector variable (width 1: a free Boolean)."""
    if width < 1:
        raise WidthError(f"variable {name} needs a positive width, not {width}")
    return intern("var", (), width, name)


def memory(name: str, address_width: int) -> Term:
    """A free byte-addressed memory: every address of `address_width` bits holds one byte."""
    if address_width < 1:
        raise WidthError(f"memory {name} needs a positive address width, not {address_width}")
    return intern("memory", (), 0, (name, address_width), address_width)


FALSE: Final = const(0, 1)
TRUE: Final = const(1, 1)


def one_if(condition: bool) -> Term:
    """The Boolean constant."""
    return TRUE if condition else FALSE


def signed(value: int, width: int) -> int:
    """The value of a bit pattern in two's complement."""
    return value - (1 << width) if value >> (width - 1) else value


def same_width(a: Term, b: Term) -> int:
    """The common width of two bit-vectors, or an error."""
    width = a.width
    if width != b.width or width == 0:
        raise WidthError(f"operands of widths {width} and {b.width}")
    return width
