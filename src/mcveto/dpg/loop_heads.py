"""Depth-first search: a reverse postorder of what is reachable, and the targets of edges back into the search's stack.

In that order every edge that is not into one of those targets goes forward; in a reducible graph they are the heads of
its loops (Tarjan, SIAM J. Comput. 1972).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def reverse_postorder(entry: N, successors: Mapping[N, Sequence[N]]) -> tuple[list[N], set[N]]:
    """(the nodes reachable from the entry, the targets of back edges)."""
    postorder: list[N] = []
    heads: set[N] = set()
    active, seen = {entry}, {entry}
    stack = [(entry, iter(successors[entry]))]
    while stack:
        node, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            stack.pop()
            active.discard(node)
            postorder.append(node)
        elif following in active:
            heads.add(following)
        elif following not in seen:
            seen.add(following)
            active.add(following)
            stack.append((following, iter(successors[following])))
    return postorder[::-1], heads
