"""From a hot address to trees of paths: what one compiled function will contain.

A *head* is an address the function can be entered at and come back to (loop heads, targets of indirect transfers). The
code from a head on is followed through direct jumps, calls, predicted returns and both sides of conditional branches
until it reaches a head again, or something that was never executed or cannot be compiled: a tree whose leaves go to
heads or leave the function. Joins are duplicated within limits, in the manner of trace trees (Gal et al., PLDI 2009).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field

from mcveto.late_methods import dataclass

from ..pcode import Instruction, Transfer
from ..trace import Path
from .lift import Check, Fork, Known, Lifter, Load, NotCompiled, Store, Way
from .nodes import Graph, Node
from .views import View

MAX_PATH = 64
_MAX_FORKS = 5
_MAX_TREE = 160
_MAX_HEADS = 96
_MAX_FOREST = 1500
_MAX_COPIES = 4
_MAX_DEPTH = 60


@dataclass(slots=True, eq=False)
class Site:
    """A place where the function can be left: the state there, in terms of the state at the head."""

    cells: dict[int, Node]
    steps: Path
    pc: int
    target: Node | None = None
    leaves: bool = True
    # Set when the code is written: what has been computed by then.
    sequence: int = 0
    scopes: frozenset[int] = frozenset()
    count: int = 0


@dataclass(slots=True, eq=False)
class Group:
    """Accesses through one view at constant distances from one base: one guard for all of them."""

    base: Node
    view: View
    lowest: int
    highest: int
    accesses: int = 0
    exact: bool = False
    wraps: bool = False


@dataclass(slots=True)
class Access:
    """A load or store; through a group, at an absolute address (view only), or through a helper (neither)."""

    is_store: bool
    address: Node
    offset: int
    size: int
    value: Node
    site: Site
    group: Group | None
    view: View | None


@dataclass(slots=True)
class Guard:
    condition: Node
    site: Site


@dataclass(slots=True)
class Branch:
    condition: Node
    taken: list[Item]
    other: list[Item]


@dataclass(slots=True, eq=False)
class Goto:
    """The end of a path that stays in the function; `target` is a head, or a node for an indirect transfer."""

    target: int | Node
    cells: dict[int, Node]
    steps: Path
    site: Site | None = None


@dataclass(slots=True)
class Leave:
    site: Site


Item = Access | Guard | Branch | Goto | Leave


@dataclass(slots=True)
class _Here:
    """Where the growth of a path has got to."""

    pc: int
    cells: dict[int, Node]
    steps: Path
    known: Known
    forks: int
    calls: tuple[int, ...]
    deep: bool = False

    def copy(self) -> _Here:
        return _Here(self.pc, self.cells, self.steps, self.known, self.forks, self.calls, self.deep)


@dataclass
class Surroundings:
    """What the trees may assume about the program."""

    address_bits: int
    instruction_at: Callable[[int], Instruction | None]
    return_point: Callable[[Instruction], int]
    successors: dict[int, dict[int, int]]
    loop_heads: Collection[int]
    companions: Callable[[int], Collection[int]]
    # (instruction, which access, size, address if constant) -> view to use and an address seen there
    view_for: Callable[[Instruction, int, int, int | None], tuple[View | None, int]]
    uncompiled: set[int] = field(default_factory=set)


class Forest:
    """The trees of one function, grown from some heads."""

    def __init__(self, graph: Graph, lifter: Lifter, around: Surroundings, seeds: Collection[int]) -> None:
        self.graph = graph
        self.trees: dict[int, list[Item]] = {}
        # Views that some store goes through, whether or not its instruction made it into a tree.
        self.written: set[View] = set()
        self.instructions: set[Instruction] = set()
        self.dynamic: set[int] = set()
        self.longest = 1
        self.address_bits = around.address_bits
        self._around = around
        self._lifter = lifter
        self._heads = set(seeds)
        self._worklist = sorted(seeds)
        self._groups: dict[tuple[int, str, int], Group] = {}
        self._size = 0
        self._total = 0
        self._copies: dict[int, int] = {}
        while self._worklist:
            head = self._worklist.pop(0)
            self._groups, self._size, self._copies = {}, 0, {}
            self.trees[head] = self._grow(_Here(head, {}, (), {}, 0, ()))
        for items in self.trees.values():
            self._close(items)

    def _close(self, items: list[Item]) -> None:
        """Ways out that lead to a head after all stay in."""
        for at, item in enumerate(items):
            if isinstance(item, Branch):
                self._close(item.taken)
                self._close(item.other)
            elif isinstance(item, Leave) and item.site.steps:
                there = self.trees.get(item.site.pc)
                if there is not None and not isinstance(there[0], Leave):
                    items[at] = Goto(item.site.pc, item.site.cells, item.site.steps)

    def _add_head(self, pc: int) -> bool:
        if pc in self._heads:
            return True
        if len(self._heads) >= _MAX_HEADS or self._instruction(pc) is None:
            return False
        for head in (pc, *self._around.companions(pc)):
            if head not in self._heads and self._instruction(head) is not None:
                self._heads.add(head)
                self._worklist.append(head)
        return True

    def _instruction(self, pc: int) -> Instruction | None:
        if pc in self._around.uncompiled or self._total >= _MAX_FOREST:
            return None
        return self._around.instruction_at(pc)

    def _cut(self, here: _Here) -> list[Item]:
        """Ends the path at a head, or leaves."""
        self.longest = max(self.longest, len(here.steps))
        if here.steps and self._add_head(here.pc):
            return [Goto(here.pc, here.cells, here.steps)]
        return [Leave(Site(here.cells, here.steps, here.pc))]

    def _grow(self, here: _Here) -> list[Item]:
        items: list[Item] = []
        while True:
            pc = here.pc
            must_cut = bool(here.steps) and (
                pc in self._heads
                or here.deep
                or pc in self._around.loop_heads
                or len(here.steps) >= MAX_PATH
                or self._size >= _MAX_TREE
                or self._copies.get(pc, 0) >= _MAX_COPIES
                or any(step[0].pc == pc for step in here.steps)
            )
            instruction = None if must_cut else self._instruction(pc)
            if instruction is None:
                return items + self._cut(here)
            groups = dict(self._groups)
            try:
                ways = self._lifter.lift(instruction, here.cells, here.known)
                start = Site(here.cells, here.steps, pc, leaves=False)
                rest = self._follow(instruction, ways, here, start, items)
            except NotCompiled:
                self._groups = groups
                self._around.uncompiled.add(pc)
                return items + self._cut(here)
            if rest is None:
                return items

    def _follow(
        self, instruction: Instruction, ways: Fork | Way, here: _Here, start: Site, items: list[Item]
    ) -> bool | None:
        """Appends the instruction's effects; None if the path has ended, else `here` is at the next instruction."""
        planned = self._plan(instruction, ways, start)
        items.extend(planned)
        self._size += 1
        self._total += 1
        self._copies[here.pc] = self._copies.get(here.pc, 0) + 1
        self.instructions.add(instruction)
        if isinstance(ways, Way):
            return self._advance(instruction, ways, here, items)
        there = here.copy()
        here.forks += 1
        there.forks += 1
        taken = self._side(instruction, ways.taken, there, start)
        other = self._side(instruction, ways.other, here, start)
        items.append(Branch(ways.condition, taken, other))
        return None

    def _side(self, instruction: Instruction, ways: Fork | Way, here: _Here, start: Site) -> list[Item]:
        items: list[Item] = []
        if isinstance(ways, Fork):
            items.extend(self._plan(instruction, ways, start))
            there = here.copy()
            taken = self._side(instruction, ways.taken, there, start)
            other = self._side(instruction, ways.other, here, start)
            items.append(Branch(ways.condition, taken, other))
            return items
        items.extend(self._plan(instruction, ways, start))
        if self._advance(instruction, ways, here, items) is None:
            return items
        seen = self._around.successors.get(instruction.pc, {})
        if here.pc not in seen:
            return [*items, Leave(Site(here.cells, here.steps, here.pc))]
        if here.forks > _MAX_FORKS:
            return items + self._cut(here)
        return items + self._grow(here)

    def _advance(self, instruction: Instruction, way: Way, here: _Here, items: list[Item]) -> bool | None:
        here.cells = {**here.cells, **way.writes}
        here.known = way.known
        here.deep = here.deep or any(value.depth > _MAX_DEPTH for value in way.writes.values())
        here.steps = (*here.steps, (instruction, way.transfer))
        self.longest = max(self.longest, len(here.steps))
        if way.transfer is Transfer.CALL:
            here.calls = (*here.calls, self._around.return_point(instruction))
        if way.target.op == "CONST":
            here.pc = way.target.value
            return True
        seen = self._around.successors.get(instruction.pc, {})
        for pc in sorted(seen, key=lambda pc: (-seen[pc], pc))[:32]:
            if self._add_head(pc):
                self.dynamic.add(pc)
        expected: int | None = None
        if way.transfer is Transfer.RETURN and here.calls:
            expected = here.calls[-1]
            here.calls = here.calls[:-1]
        elif len(seen) == 1:
            expected = next(iter(seen))
        site = Site(here.cells, here.steps, -1, way.target)
        otherwise: list[Item] = [Goto(way.target, here.cells, here.steps, site)]
        if expected is None or expected not in seen or here.forks > 2 * _MAX_FORKS:
            items.extend(otherwise)
            return None
        there = here.copy()
        there.pc = expected
        there.forks += 1
        address = self.graph.const(expected)
        condition = self.graph.apply("INT_EQUAL", (way.target, address), self._around.address_bits, 8)
        if condition.op == "CONST":
            if condition.value:
                here.pc = expected
                return True
            items.extend(otherwise)
            return None
        items.append(Branch(condition, self._grow(there), otherwise))
        return None

    def _plan(self, instruction: Instruction, ways: Fork | Way, start: Site) -> list[Item]:
        """How the instruction's memory accesses and checks are done; raises NotCompiled."""
        items: list[Item] = []
        stored: set[int] | None = None
        for event in ways.events:
            if isinstance(event, Check):
                if stored is not None:
                    raise NotCompiled("trap after a store")
                items.append(Guard(event.condition, start))
                continue
            access = self._access(instruction, event, start)
            # After the first store of an instruction nothing may hand over to the reference emulator any more.
            if stored is not None:
                if access.group is None or id(access.group) not in stored:
                    raise NotCompiled("access after a store")
                access.group.exact = True
            if access.is_store and stored is None:
                stored = {id(item.group) for item in [*items, access] if isinstance(item, Access) and item.group}
            items.append(access)
        if stored is not None and isinstance(ways, Fork):
            raise NotCompiled("branch after a store")
        return items

    def _access(self, instruction: Instruction, event: Load | Store, start: Site) -> Access:
        base, offset = self.graph.linear(event.address, self._around.address_bits)
        is_store = isinstance(event, Store)
        constant = offset if base is None else None
        view, seen = self._around.view_for(instruction, event.ordinal, event.size, constant)
        if view is not None and not (view.writable if is_store else view.readable):
            view = None
        group: Group | None = None
        if view is not None and base is not None:
            residue = offset % event.size if view.aligned else 0
            key = (base.serial, view.name, residue)
            found = self._groups.get(key)
            if found is None:
                found = self._groups[key] = Group(base, view, offset, offset + event.size)
            group = found
            group.lowest = min(group.lowest, offset)
            group.highest = max(group.highest, offset + event.size)
            group.accesses += 1
            # A base just below the top of the address space, as in loops that count up to zero.
            group.wraps = group.wraps or not 0 <= seen - offset < 1 << self._around.address_bits
        elif view is not None and (offset < view.low or offset + event.size > view.high or offset % event.size):
            view = None
        if is_store and view is not None:
            self.written.add(view)
        return Access(is_store, event.address, offset, event.size, event.value, start, group, view)
