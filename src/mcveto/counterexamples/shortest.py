"""The shortest trace alone: read from where the shortest ways of post* come from, without a search.

A shortest run passes no configuration twice (condition 1). Whether it has unnecessary recursion (condition 2) is for
others to ask.
"""

from __future__ import annotations

from mcveto.counterexamples.product import Head
from mcveto.counterexamples.reachable import NO_HEAD, Entry, Reachable
from mcveto.counterexamples.stacks import Stack, StackTable
from mcveto.counterexamples.trace import State, Witness


def shortest_witness(reachable: Reachable) -> tuple[Witness, bool]:
    """A shortest run to the nearest error, and whether a call is pending twice in it."""
    product = reachable.product
    count, table = product.symbol_count, StackTable()
    entry, head = reachable.errors[0]
    # The activations that are pending at the error, innermost first, each with the head that it is left at.
    chain: list[tuple[Entry, Head, int]] = []
    while reachable.callers[entry]:
        frame = next(iter(reachable.callers[entry]))
        chain.append((entry, head, frame.symbol))
        entry, head = frame.below, reachable.call_heads[entry]
    below: Stack | None = None
    # Last to first: what is on top of this list comes next, going backwards.
    pending: list[tuple[Entry, Head, Stack | None]] = [(entry, head, below)]
    for entry, head, symbol in reversed(chain):
        below = table.push(symbol, below)
        pending.append((entry, head, below))
    states: list[State] = []
    recurs = any(stack is not None and stack.previous is not None for _, _, stack in pending)
    while pending:
        entry, head, stack = pending.pop()
        if head == NO_HEAD:  # what lies on the stack at the start has called nobody
            continue
        before_of = reachable.before[entry]
        while True:
            states.append(State(head // count, head % count, stack))
            before = before_of.get(head)
            if isinstance(before, int):
                head = before
                continue
            if before is not None:
                pending.append((entry, before.caller, stack))
                above = table.push(head % count, stack)
                recurs = recurs or above.previous is not None
                pending.append((before.callee, reachable.pops[before.callee][before.control][0], above))
            break
    states.reverse()
    return Witness(product, tuple(states)), recurs
