"""Where an abstract path may have been since a flag got the value that it has at its end.

A function that forgets to give a lock back has returned when that shows: in the next request, or in a check between the
two. What was forgotten about it was forgotten in the code that was executed with the lock held, however far away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from mcveto.engines.simulation.directed import Node, Values
from mcveto.engines.state import Calls


def flags_of(values: Values, numbers: Collection[int]) -> Values:
    """Of what is kept apart, what has one of these numbers."""
    return tuple((number, value) for number, value in values if number in numbers)


def places_since_change(
    end: Node, edges: Iterable[tuple[Node, Node]], numbers: Collection[int]
) -> set[tuple[int, Calls | None]]:
    """The program counters, with the calls around them, on all ways back from a node along nodes whose flags are the
    same."""
    before: dict[Node, list[Node]] = {}
    for source, node in edges:
        before.setdefault(node, []).append(source)
    flags = flags_of(end[2], numbers)
    seen = {end}
    pending = deque([end])
    while pending:
        for source in before.get(pending.popleft(), ()):
            if source not in seen and flags_of(source[2], numbers) == flags:
                seen.add(source)
                pending.append(source)
    return {node[:2] for node in seen}
