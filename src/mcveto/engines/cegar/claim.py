"""The reached regions as an inductive invariant: each one's predicates, and those constants that are needed.

A constant is needed where its value decided that a step is not taken, where it goes or what a store hits; where it
decides a predicate of the region behind; and where a constant that is needed behind is computed from it. Everything
else is left out: regions know thousands of constants, and a proof that repeats them all could not be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcveto.dpg.proof import Proof, ProofNode
from mcveto.dpg.strengthen.path_state import PathState, stores_of
from mcveto.engines.cegar.post import Post
from mcveto.engines.cegar.region import Edge, Region
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.program.program import Program

# A register by the number of its cell as -1 - number, or a byte by its address.
Key = int
Needed = dict[Key, None]


class Claim:
    def __init__(self, program: Program, post: Post) -> None:
        self._program = program
        self._post = post
        self._layout = program.decoder.layout
        self._word = program.decoder.row.address_bytes

    def proof(self, regions: Sequence[Region]) -> Proof:
        needed = self._needed(regions)
        return Proof(
            tuple(
                ProofNode(region.location, (*self._literals(region, needed[region]), *region.cube), number == 0)
                for number, region in enumerate(regions)
            )
        )

    def _needed(self, regions: Sequence[Region]) -> dict[Region, Needed]:
        """What is needed where, by a fixed point from the uses back to where the values come from."""
        states = _States(self._post)
        into: dict[Region, list[Edge]] = {region: [] for region in regions}
        for region in regions:
            for edge in region.edges:
                into[edge.target].append(edge)
        needed: dict[Region, Needed] = {region: {} for region in regions}
        fresh: dict[Region, Needed] = {}
        for region in regions:
            found = self._reads(region.used, region, states.of(region))
            for edge in region.edges:
                before = edge.outcome.all_after(edge.target.cube)
                found.update(self._reads(before, region, states.of(region)))
            if found:
                needed[region].update(found)
                fresh[region] = found
        waiting = sorted(fresh, key=lambda region: region.order)
        while waiting:
            region = waiting.pop()
            keys = fresh.pop(region, None)
            if not keys:
                continue
            for edge in into[region]:
                source = edge.source
                known = needed[source]
                added = {key: None for key in self._before(edge, keys, states.of(source)) if key not in known}
                if added:
                    known.update(added)
                    if source in fresh:
                        fresh[source].update(added)
                    else:
                        fresh[source] = added
                        waiting.append(source)
        return needed

    def _before(self, edge: Edge, keys: Needed, state: PathState) -> Needed:
        """What must be known before a step for the keys to be known behind it."""
        outcome, source = edge.outcome, edge.source
        found: Needed = {}
        stores = [
            (state.value(address), value) for address, value, _ in stores_of(outcome.memory, self._post.memory)[::-1]
        ]
        for key in keys:
            if key < 0:
                cell = self._layout.cells[-1 - key]
                term = outcome.state.get(t.var(cell.name, self._layout.significant_bits(cell)))
                if term is None:
                    found[key] = None
                else:
                    found.update(self._reads((term,), source, state))
                continue
            for address, value in stores:
                if address.op == "const" and 0 <= key - address.data < value.width // 8:
                    found.update(self._reads((value,), source, state))
                    break
            else:
                found[key] = None
        return found

    def _reads(self, terms: Iterable[Term], region: Region, state: PathState) -> Needed:
        """The constants of a region that the terms read."""
        found: Needed = {}
        constants, space = region.constants, self._program.space
        stack = list(terms)
        seen = set(stack)
        while stack:
            term = stack.pop()
            if term.op == "var":
                cell = self._layout.by_name.get(str(term.data))
                if cell is not None and cell.number in constants.registers and not self._is_fixed(cell.number, region):
                    found[-1 - cell.number] = None
                continue
            if term.op == "load":
                address = state.value(term.args[1])
                if address.op == "const":
                    for at in range(term.data[0]):
                        where = (address.data + at) & space.mask
                        if space.writable(where) and constants.byte(where) is not None:
                            found[where] = None
            for argument in term.args:
                if argument not in seen:
                    seen.add(argument)
                    stack.append(argument)
        return found

    def _is_fixed(self, number: int, region: Region) -> bool:
        """Whether the location itself says what a register is, because it is a pointer."""
        if number not in self._post.pointers:
            return False
        location = region.location
        return (location.stack_pointer if number == self._post.pointers[0] else location.frame_pointer) >= 0

    def _literals(self, region: Region, needed: Needed) -> list[Term]:
        constants = region.constants
        found: list[Term] = []
        for key in sorted((key for key in needed if key < 0), reverse=True):
            cell = self._layout.cells[-1 - key]
            bits = self._layout.significant_bits(cell)
            found.append(t.eq(t.var(cell.name, bits), t.const(constants.registers[cell.number], bits)))
        addresses = sorted(key for key in needed if key >= 0)
        at = 0
        while at < len(addresses):
            size = self._word
            while size > 1 and (addresses[at] % size or addresses[at : at + size][-1] != addresses[at] + size - 1):
                size //= 2
            found.append(self._word_is(addresses[at], bytes(constants[addresses[at] + i] for i in range(size))))
            at += size
        return found

    def _word_is(self, address: int, content: bytes) -> Term:
        big_endian = self._program.decoder.row.big_endian
        where = t.const(address, self._program.space.address_bits)
        value = int.from_bytes(content, "big" if big_endian else "little")
        return t.eq(t.load(self._post.memory, where, len(content), big_endian), t.const(value, 8 * len(content)))


class _States:
    """States of regions, the last few of them kept."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._kept: dict[Region, PathState] = {}

    def of(self, region: Region) -> PathState:
        found = self._kept.get(region)
        if found is None:
            if len(self._kept) > 2000:
                self._kept.clear()
            found = self._kept[region] = self._post.state(region.location, region.constants)
        return found
