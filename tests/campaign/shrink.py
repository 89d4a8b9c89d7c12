"""From a program with a wrong verdict to a small one: fewer items, then smaller numbers, while it stays wrong.

Delta debugging (Zeller and Hildebrandt, 2002) on the list of items; every list assembles, so nothing else is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from .generate import RandomProgram
from .items import Item

IsWrong = Callable[[RandomProgram], bool]


def shrink(program: RandomProgram, is_wrong: IsWrong, seconds: float = 120.0) -> RandomProgram:
    """The smallest program found in the time given for which `is_wrong` still holds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        smaller = _fewer_items(program, is_wrong, deadline)
        smaller = _smaller_numbers(smaller, is_wrong, deadline)
        smaller = _fewer_inputs(smaller, is_wrong)
        if smaller == program:
            break
        program = smaller
    return program


def _fewer_items(program: RandomProgram, is_wrong: IsWrong, deadline: float) -> RandomProgram:
    size = max(1, len(program.items) // 2)
    while size:
        at = 0
        while at < len(program.items) and time.monotonic() < deadline:
            smaller = replace(program, items=(*program.items[:at], *program.items[at + size :]))
            if smaller.items and is_wrong(smaller):
                program = smaller
            else:
                at += size
        size //= 2
    return program


def _smaller_numbers(program: RandomProgram, is_wrong: IsWrong, deadline: float) -> RandomProgram:
    for at, item in enumerate(program.items):
        for candidate in _simpler(item):
            if time.monotonic() > deadline:
                return program
            smaller = replace(program, items=(*program.items[:at], candidate, *program.items[at + 1 :]))
            if is_wrong(smaller):
                program = smaller
                break
    return program


def _simpler(item: Item) -> list[Item]:
    found: list[Item] = []
    if item[0] in ("set", "addi", "andi", "ori", "xori", "ifi"):
        position = 3 if item[0] == "ifi" else 2
        value = item[position]
        assert isinstance(value, int)
        found += [(*item[:position], small, *item[position + 1 :]) for small in (0, 1, value & 0xFF) if small != value]
    return found


def _fewer_inputs(program: RandomProgram, is_wrong: IsWrong) -> RandomProgram:
    for change in ({"input_bits": 0}, {"input_bytes": 0}, {"writable": False}, {"input_bits": 1}):
        smaller = replace(program, **change)
        if smaller != program and (smaller.input_bits < program.input_bits or "input_bits" not in change):
            try:
                if is_wrong(smaller):
                    program = smaller
            except Exception:
                continue
    return program
