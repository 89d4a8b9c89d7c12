"""Drivers with something changed at random: a lock more or less, another condition, another way out.

The generated drivers (`tools/large_driver.py`) keep the discipline of their locks. What a change makes of that is not
known beforehand; it may be a mistake that few inputs show, or none at all.
"""

from __future__ import annotations

import random
import re

_LOCKING = re.compile(r"(saved = )?(spin|inner)_(un)?lock\w*\([^)]*\);")
_NUMBER = re.compile(r"\b\d+(?=u\b)")
_RELATIONS = (("==", "!="), ("!=", "=="), (" < ", " <= "), (" > ", " >= "), (" & ", " | "), (" && ", " || "))


def mutated(text: str, draw: random.Random) -> tuple[str, str]:
    """The text of a driver with one change in a handler, and what was changed."""
    lines = text.splitlines()
    body = [number for number, line in enumerate(lines) if line.startswith("  ")]
    locking = [number for number in body if _LOCKING.search(lines[number])]
    conditions = [number for number in body if "if (" in lines[number]]
    ways = [_without_lock, _with_another_lock, _other_number, _other_number, _other_relation, _other_relation, _leaving]
    while True:
        way = draw.choice(ways)
        number = draw.choice(locking if way in (_without_lock, _with_another_lock) else conditions)
        changed = way(lines[number], draw)
        if changed != lines[number]:
            what = f"{lines[number].strip()} -> {changed.strip()}"
            lines[number] = changed
            return "\n".join(lines) + "\n", what


def _without_lock(line: str, draw: random.Random) -> str:
    return _LOCKING.sub(";", line, count=1)


def _with_another_lock(line: str, draw: random.Random) -> str:
    """The same once more, for few inputs."""
    found = _LOCKING.search(line)
    assert found is not None
    again = f"{found[0]} if (choice() == {draw.choice((3, 77, 1 << 20))}) {{ {found[0]} }}"
    return f"{line[: found.start()]}{{ {again} }}{line[found.end() :]}"


def _other_number(line: str, draw: random.Random) -> str:
    numbers = list(_NUMBER.finditer(line))
    if not numbers:
        return line
    found = draw.choice(numbers)
    return f"{line[: found.start()]}{max(0, int(found[0]) + draw.choice((-1, 1, 2, 16)))}{line[found.end() :]}"


def _other_relation(line: str, draw: random.Random) -> str:
    there = [pair for pair in _RELATIONS if pair[0] in line]
    return line.replace(*draw.choice(there), 1) if there else line


def _leaving(line: str, draw: random.Random) -> str:
    return re.sub(r"goto \w+;", "return -1;", line, count=1)
