"""How a step leaves a node, as a nested word sees it (TR1669 §3, App. A): an internal step, a call, or a return.

A call carries the return address it puts on the auxiliary stack (§3.5), a return the address it takes off. Where the
call string is part of the location, every step is internal.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    INTERNAL = 0
    CALL = 1
    RETURN = 2


class Way(NamedTuple):
    kind: Kind
    address: int = 0
    """The return address pushed by a call, or expected by a return."""


INTERNAL = Way(Kind.INTERNAL)


class Exits(NamedTuple):
    """In which ways a block can end."""

    by_step: bool
    by_return: bool
