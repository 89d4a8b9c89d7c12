"""Which blocks of code the concrete runs of this process have executed, for coverage reports, and which ones symbolic
paths went through.

Runs are made in many places; what they executed is asked for once, when the search is over.
"""

from __future__ import annotations

_blocks: dict[tuple[int, int], None] = {}
_followed: dict[tuple[int, int], None] = {}


def note(address: int, size: int) -> None:
    if size > 0:
        _blocks[address, size] = None


def forget() -> None:
    _blocks.clear()
    _followed.clear()


def executed() -> tuple[tuple[int, int], ...]:
    """Blocks as (address, size), sorted."""
    return tuple(sorted(_blocks))


def note_path(address: int, size: int) -> None:
    if size > 0:
        _followed[address, size] = None


def followed() -> tuple[tuple[int, int], ...]:
    """Blocks that symbolic paths went through."""
    return tuple(sorted(_followed))
