"""Which nodes of a nested graph can be reached on paths whose returns match their calls, from scratch.

The plain saturation (Reps, Horwitz, Sagiv, POPL 1995): an activation is an entry node with the return address that is
pending in it. A call starts an activation and remembers who started it; a return continues all who did. The search
itself keeps shortest paths incrementally (`automata/incremental_reachability`); this is what its result is checked
with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcveto.dpg.ways import Kind, Way

Activation = tuple[int, int]
"""(the return address that is pending, the node in which the activation began)"""


def pending_addresses(
    starts: Iterable[int], sentinel: int, steps: Callable[[int], Iterable[tuple[Way, int]]]
) -> dict[int, set[int]]:
    """The nodes on nested paths from `starts`, where `sentinel` is pending, each with the addresses pending there."""
    reached: set[tuple[Activation, int]] = set()
    waiting: list[tuple[Activation, int]] = []
    callers: dict[Activation, set[Activation]] = {}
    returned: dict[Activation, set[int]] = {}

    def reach(activation: Activation, node: int) -> None:
        if (activation, node) not in reached:
            reached.add((activation, node))
            waiting.append((activation, node))

    for start in sorted(starts):
        reach((sentinel, start), start)
    while waiting:
        activation, node = waiting.pop()
        for way, target in steps(node):
            if way.kind is Kind.INTERNAL:
                reach(activation, target)
            elif way.kind is Kind.CALL:
                called = (way.address, target)
                callers.setdefault(called, set()).add(activation)
                reach(called, target)
                for back in sorted(returned.get(called, ())):
                    reach(activation, back)
            elif way.address == activation[0]:
                returned.setdefault(activation, set()).add(target)
                for caller in sorted(callers.get(activation, ())):
                    reach(caller, target)
    found: dict[int, set[int]] = {}
    for (address, _), node in reached:
        found.setdefault(node, set()).add(address)
    return found
