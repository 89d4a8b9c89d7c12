"""What the product reaches before its first error state, with distances: post* by procedure summaries.

Schwoon's post* (thesis, section 3.3) in the form of a tabulation: a state of the P-automaton is an *entry*, the head
with which an activation of a procedure began, and the automaton reads γ from control q to entry e iff ⟨q, γ⟩ is reached
within an activation begun by e. `distance[e][head]` is the fewest steps for that; `callers[e]` are the frames on which
activations begun by e stand, i.e. the automaton's transitions below the top. Transitions leave in the order of
`depth[e] + distance`, the fewest steps from the start of the model, which never decreases along a derivation (every
caller of e is at least as deep as depth[e] says), so each is settled once, as in Knuth's generalisation of Dijkstra's
algorithm; all steps cost one, so a list of buckets is the queue. Rules of error states are not followed: only the
frontier of the final states is wanted (section 3 of the paper).
"""

from __future__ import annotations

from typing import NamedTuple

from mcveto.counterexamples.collector import without_cycle_collection
from mcveto.counterexamples.product import Head, Product

Entry = int
NO_HEAD = -1


class Frame(NamedTuple):
    """A symbol to continue with, pushed by an activation that began with entry `below`."""

    symbol: int
    below: Entry


class Returned(NamedTuple):
    """A head called an activation that began with entry `callee` and ended in `control`."""

    caller: Head
    callee: Entry
    control: int


class Reachable:
    """`nearest_only`: look no farther than the nearest errors are. `is_complete` says whether all was looked at."""

    def __init__(self, product: Product, nearest_only: bool = False) -> None:
        self.is_complete = True
        self._nearest_only = nearest_only
        self.product = product
        self.entries: list[Head] = []
        self.distance: list[dict[Head, int]] = []
        self.depth: list[int] = []
        self.callers: list[dict[Frame, int]] = []
        """For each entry the frames it was called on, with the fewest steps from the frame's entry to the call."""
        self.exits: list[dict[int, int]] = []
        """For each entry the controls in which its activations end, with the fewest steps."""
        self.pops: list[dict[int, list[Head]]] = []
        """For each entry and control the heads whose rules end the activation in it."""
        self.roots: list[Entry] = []
        self.bases: list[Entry] = []
        """What stands at the bottom of the stack, below the roots."""
        self.errors: list[tuple[Entry, Head]] = []
        """Heads in error states, nearest first."""
        self.before: list[dict[Head, Head | Returned]] = []
        """For each entry and head where a shortest way to it comes from, within the activation."""
        self.call_heads: list[Head] = []
        """For each entry the head that called it first, on the first of its frames."""
        self._numbers: dict[Head, Entry] = {}
        self._callers_of: dict[tuple[Entry, Frame], Head] = {}
        self._buckets: list[list[tuple[Entry, Head]]] = [[]]
        with without_cycle_collection():
            self._explore()

    def entry(self, head: Head, depth: int) -> Entry:
        """The number of the entry, made with this depth if it is new."""
        number = self._numbers.get(head)
        if number is not None:
            return number
        number = self._numbers[head] = self._new_entry(head, depth)
        self.distance[number][head] = 0
        self._put(depth, number, head)
        return number

    def _new_entry(self, head: Head, depth: int) -> Entry:
        self.entries.append(head)
        self.distance.append({})
        self.depth.append(depth)
        self.callers.append({})
        self.exits.append({})
        self.pops.append({})
        self.before.append({})
        self.call_heads.append(NO_HEAD)
        return len(self.entries) - 1

    def _put(self, level: int, entry: Entry, head: Head) -> None:
        buckets = self._buckets
        while len(buckets) <= level:
            buckets.append([])
        buckets[level].append((entry, head))

    def _explore(self) -> None:
        product = self.product
        count = product.symbol_count
        stack = product.start_stack
        for start in product.starts:
            self.roots.append(self.entry(product.head(start, stack[0]), 0))
        above = self.roots
        # What lies on the stack at the start is as if activations without a beginning had called the first one.
        for symbol in stack[1:]:
            base = self._new_entry(NO_HEAD, 0)
            for entry in above:
                self.callers[entry][Frame(symbol, base)] = 0
            above = [base]
        self.bases = above
        buckets = self._buckets
        is_final, rules_of = product.is_final, product.rules
        level = 0
        while level < len(buckets):
            buckets.append([])
            following_bucket = buckets[level + 1]
            # The bucket may grow while it is worked off.
            for entry, head in buckets[level]:
                here, before = self.distance[entry], self.before[entry]
                distance = here[head]
                if self.depth[entry] + distance != level:
                    continue
                if is_final[head // count]:
                    self.errors.append((entry, head))
                    continue
                distance += 1
                for target, first, second in rules_of(head):
                    if first < 0:
                        self._leave(entry, head, target, distance)
                    elif second < 0:
                        following = target * count + first
                        known = here.get(following)
                        if known is None or known > distance:
                            here[following] = distance
                            before[following] = head
                            following_bucket.append((entry, following))
                    else:
                        self._call(entry, head, target * count + first, second, distance)
            buckets[level] = []
            level += 1
            if self._nearest_only and self.errors:
                self.is_complete = not any(buckets)
                return
            while len(buckets) > level and not buckets[-1]:
                buckets.pop()

    def _call(self, entry: Entry, caller: Head, head: Head, symbol: int, distance: int) -> None:
        callee = self.entry(head, self.depth[entry] + distance)
        frame = Frame(symbol, entry)
        callers = self.callers[callee]
        if frame in callers:
            return
        if not callers:
            self.call_heads[callee] = caller
        callers[frame] = distance
        self._callers_of[callee, frame] = caller
        for control, steps in self.exits[callee].items():
            self._return(entry, Returned(caller, callee, control), symbol, distance + steps)

    def _leave(self, entry: Entry, head: Head, control: int, distance: int) -> None:
        heads = self.pops[entry].setdefault(control, [])
        heads.append(head)
        if len(heads) > 1:
            return
        self.exits[entry][control] = distance
        for frame, steps in self.callers[entry].items():
            caller = self._callers_of.get((entry, frame), NO_HEAD)
            self._return(frame.below, Returned(caller, entry, control), frame.symbol, steps + distance)

    def _return(self, entry: Entry, returned: Returned, symbol: int, distance: int) -> None:
        head = returned.control * self.product.symbol_count + symbol
        here = self.distance[entry]
        known = here.get(head)
        if known is None or known > distance:
            here[head] = distance
            self.before[entry][head] = returned
            self._put(self.depth[entry] + distance, entry, head)
